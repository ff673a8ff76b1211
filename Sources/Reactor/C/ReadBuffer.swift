/// The loop's one buffer: every link reads into it and hands its machine a span of it.
final class ReadBuffer {
  let storage: UnsafeMutableRawBufferPointer

  init(capacity: Int) { storage = .allocate(byteCount: capacity, alignment: 64) }

  deinit { storage.deallocate() }

  func withBytes(_ count: Int, _ body: (RawSpan) -> Void) {
    body(UnsafeRawBufferPointer(rebasing: storage[..<count]).bytes)
  }
}
