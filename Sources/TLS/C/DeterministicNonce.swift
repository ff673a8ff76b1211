import COpenSSL

/// The ECDSA nonces for P-256 with SHA-256, derived from private key and message: HMAC-DRBG of RFC 6979 §3.2. The first nonce
/// is nearly always usable. The whole state is as secret as the key. It is stored in one place and wiped at the end.
struct DeterministicNonce: ~Copyable {
  static let size = 32
  /// K, then the input of HMAC: V, a domain byte, the private key, the digest.
  private let state: UnsafeMutablePointer<UInt8>
  private static let total = 4 * size + 1
  private var value: UnsafeMutablePointer<UInt8> { state + Self.size }
  private var mark: UnsafeMutablePointer<UInt8> { state + 2 * Self.size }

  /// `fill` writes key and digest, 32 bytes each, the digest less than the group's order. Returns nil if `fill` or HMAC fails.
  init?(fill: (_ privateKey: UnsafeMutablePointer<UInt8>, _ digest: UnsafeMutablePointer<UInt8>) -> Bool) {
    state = .allocate(capacity: Self.total)
    state.initialize(repeating: 0, count: Self.total)
    value.update(repeating: 1, count: Self.size)
    guard fill(mark + 1, mark + 1 + Self.size), step(0, inputs: Self.total - Self.size), step(1, inputs: Self.total - Self.size)
    else { return nil }
  }

  deinit {
    OPENSSL_cleanse(state, Self.total)
    state.deallocate()
  }

  /// The next 32 bytes, valid until the next call. They may be too large for the group. Returns nil if HMAC fails.
  func next() -> UnsafePointer<UInt8>? { hmac(into: value, inputs: Self.size) ? UnsafePointer(value) : nil }

  func reject() -> Bool { step(0, inputs: Self.size + 1) }

  /// K = HMAC_K(V ‖ mark ‖ …), V = HMAC_K(V).
  private func step(_ byte: UInt8, inputs: Int) -> Bool {
    mark.pointee = byte
    return hmac(into: state, inputs: inputs) && hmac(into: value, inputs: Self.size)
  }

  private func hmac(into place: UnsafeMutablePointer<UInt8>, inputs: Int) -> Bool {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.size) { code in
      defer { OPENSSL_cleanse(code.baseAddress, code.count) }
      var length: UInt32 = 0
      guard let bytes = code.baseAddress, HMAC(EVP_sha256(), state, Int32(Self.size), value, inputs, bytes, &length) != nil
      else {
        return false
      }
      place.update(from: bytes, count: Self.size)
      return true
    }
  }
}
