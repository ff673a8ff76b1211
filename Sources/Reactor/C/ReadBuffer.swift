/// The loop's only read buffer: links read into it and pass a span to their machines.
final class ReadBuffer {
  let storage: UnsafeMutableRawBufferPointer

  init(capacity: Int) { storage = .allocate(byteCount: capacity, alignment: 64) }

  deinit { storage.deallocate() }

  func withBytes(_ count: Int, _ body: (RawSpan) -> Void) {
    body(UnsafeRawBufferPointer(rebasing: storage[..<count]).bytes)
  }
}
