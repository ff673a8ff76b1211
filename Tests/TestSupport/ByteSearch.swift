import Glibc

extension UnsafeRawBufferPointer {
  /// The first place at or after `begin` that has these bytes. The C library searches: a debug build compares elements slowly, and
  /// `memmem` is not in the module.
  func place(of bytes: [UInt8], from begin: Int = 0) -> Int? {
    var place = begin
    while let base = baseAddress, place + bytes.count <= count,
      let found = memchr(base + place, Int32(bytes[0]), count - bytes.count - place + 1)
    {
      if memcmp(found, bytes, bytes.count) == 0 { return UnsafeRawPointer(found) - base }
      place = UnsafeRawPointer(found) - base + 1
    }
    return nil
  }
}
