import COpenSSL

/// SHA-256, HMAC, and comparison in constant time.
public enum Digest {
  public static func sha256(_ bytes: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 32)
    var count: UInt32 = 0
    let isDone = unsafe EVP_Digest(bytes, bytes.count, &digest, &count, algorithm, nil) == 1
    precondition(isDone && count == 32, "SHA-256 is unavailable")
    return digest
  }

  /// HMAC with SHA-256 (RFC 2104).
  public static func authenticator(of message: [UInt8], key: [UInt8]) -> [UInt8] {
    var code = [UInt8](repeating: 0, count: 32)
    var count: UInt32 = 0
    let isDone = unsafe HMAC(EVP_sha256(), key, Int32(key.count), message, message.count, &code, &count) != nil
    precondition(isDone && count == 32, "HMAC is unavailable")
    return code
  }

  /// Fetched once, because the look-up takes longer than hashing a short text. It is never changed, so threads may share it.
  private nonisolated(unsafe) static let algorithm = unsafe EVP_MD_fetch(nil, "SHA256", nil)

  /// Compares in a time that depends only on the lengths.
  public static func areEqual(_ a: [UInt8], _ b: [UInt8]) -> Bool {
    unsafe a.count == b.count && CRYPTO_memcmp(a, b, a.count) == 0
  }
}
