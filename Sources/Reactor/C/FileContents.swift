import CLinux
import Glibc

/// Reads and creates small files: configuration, keys, certificates.
public enum FileContents {
  /// - Throws: `EFBIG` for more than `limit` bytes: a device has no end. `ETIMEDOUT` for a pipe without bytes for `timeout` ms.
  public static func read(_ path: String, limit: Int = 4 << 20, timeout: Int32 = 10_000) throws(SystemError) -> [UInt8] {
    let file = try Descriptor(adopting: open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), of: "open")
    var input = pollfd(fd: file.raw, events: Int16(POLLIN), revents: 0)
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16384)
    while poll(&input, 1, timeout) != 0 {
      let count = chunk.withUnsafeMutableBytes { Glibc.read(file.raw, $0.baseAddress, $0.count) }
      if count < 0 && (errno == EINTR || errno == EAGAIN) { continue }
      guard count >= 0 else { throw SystemError("read") }
      if count == 0 { return bytes }
      bytes.append(contentsOf: chunk[..<count])
      guard bytes.count <= limit else { throw SystemError("read", code: EFBIG) }
    }
    throw SystemError("read", code: ETIMEDOUT)
  }

  /// Creates a file that only its owner may read and write. Throws `EEXIST` if there is a file of this name.
  public static func create(_ path: String, _ bytes: [UInt8]) throws(SystemError) {
    let file = try Descriptor(adopting: open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600), of: "open")
    do throws(SystemError) { try write(bytes, to: file.raw) } catch {
      unlink(path)
      throw error
    }
  }

  /// If a pipe's reader reads nothing for a second, a signal that is blocked to be handled later ends the process.
  static func write(_ bytes: [UInt8], to raw: Int32) throws(SystemError) {
    var output = pollfd(fd: raw, events: Int16(POLLOUT), revents: 0)
    var none = sigset_t()
    sigemptyset(&none)
    var rest = bytes[...]
    while !rest.isEmpty {
      if poll(&output, 1, 1_000) == 0 { ppoll(&output, 1, nil, &none) }
      // A pipe with room takes a piece of this size without blocking.
      let count = rest.prefix(Int(PIPE_BUF)).withUnsafeBytes { Glibc.write(raw, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { throw SystemError("write") }
      rest = rest.dropFirst(count)
    }
  }
}
