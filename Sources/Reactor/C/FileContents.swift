import Glibc

/// The bytes of small files: configuration, keys, certificates.
public enum FileContents {
  /// - Throws: `EFBIG` where the file has more than `limit` bytes, so that a device in a file's place is no trap.
  public static func read(_ path: String, limit: Int = 4 << 20) throws(SystemError) -> [UInt8] {
    let raw = open(path, O_RDONLY | O_CLOEXEC)
    guard raw >= 0 else { throw SystemError("open") }
    let file = Descriptor(adopting: raw)
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16384)
    while true {
      let count = chunk.withUnsafeMutableBytes { Glibc.read(file.raw, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw SystemError("read") }
      if count == 0 { return bytes }
      bytes.append(contentsOf: chunk[..<count])
      guard bytes.count <= limit else { throw SystemError("read", code: EFBIG) }
    }
  }
}
