import Glibc

/// An open file descriptor with one owner; closed when the owner lets go of it.
struct Descriptor: ~Copyable {
  let raw: Int32

  init(adopting raw: Int32) { self.raw = raw }

  deinit { _ = Glibc.close(raw) }

  /// The whole file, for key and certificate files.
  static func contents(of path: String) throws(SystemError) -> [UInt8] {
    let raw = open(path, O_RDONLY | O_CLOEXEC)
    guard raw >= 0 else { throw SystemError("open") }
    let file = Descriptor(adopting: raw)
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16384)
    while true {
      let count = chunk.withUnsafeMutableBytes { read(file.raw, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw SystemError("read") }
      if count == 0 { return bytes }
      bytes.append(contentsOf: chunk[..<count])
    }
  }
}
