import Glibc

struct Descriptor: ~Copyable {
  let raw: Int32

  init(adopting raw: Int32) { self.raw = raw }

  /// - Parameter call: the system call that returned `raw`.
  init(adopting raw: Int32, of call: String) throws(SystemError) {
    guard raw >= 0 else { throw SystemError(call) }
    self.raw = raw
  }

  deinit { _ = Glibc.close(raw) }
}
