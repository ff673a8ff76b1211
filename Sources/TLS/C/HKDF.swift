import COpenSSL

/// HKDF with SHA-256 (RFC 5869).
enum HKDF {
  static let size = 32

  /// - Parameter salt: at most 64 bytes.
  static func extract(_ material: [UInt8], salt: [UInt8]) -> [UInt8] { authenticator(of: material, key: salt) }

  /// The first 32 bytes of output.
  /// - Parameter key: the result of `extract`.
  static func expand(_ key: [UInt8], info: [UInt8]) -> [UInt8] { authenticator(of: info + [1], key: key) }

  private static func authenticator(of message: [UInt8], key: [UInt8]) -> [UInt8] {
    precondition(key.count <= 64)
    return [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
      shim_hmac_sha256(key, key.count, message, message.count, buffer.baseAddress)
      count = size
    }
  }
}
