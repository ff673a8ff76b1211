import Glibc

/// An open file descriptor with one owner; closed when the owner lets go of it.
struct Descriptor: ~Copyable {
  let raw: Int32

  init(adopting raw: Int32) { self.raw = raw }

  deinit { _ = Glibc.close(raw) }
}
