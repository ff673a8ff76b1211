import Glibc

/// What libFuzzer calls with each input. The target is named by `PUSHFLEET_FUZZ_TARGET`.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let input = Array(UnsafeBufferPointer(start: start, count: count))
  do throws(Violation) {
    try target.run(input)
  } catch {
    fatalError("\(target.rawValue): \(error)")
  }
  return 0
}

private let target: FuzzTarget = {
  let name = getenv("PUSHFLEET_FUZZ_TARGET").map { String(cString: $0) } ?? ""
  guard let target = FuzzTarget(rawValue: name) else {
    fatalError("PUSHFLEET_FUZZ_TARGET names none of \(FuzzTarget.allCases.map(\.rawValue).joined(separator: ", "))")
  }
  return target
}()
