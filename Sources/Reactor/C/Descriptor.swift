import Glibc

struct Descriptor: ~Copyable {
  let raw: Int32

  init(adopting raw: Int32) { self.raw = raw }

  deinit { _ = Glibc.close(raw) }
}
