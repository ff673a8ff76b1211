import COpenSSL

/// SHA-256, and comparing what nobody may find out by the time it takes.
public enum Digest {
  public static func sha256(_ bytes: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 32)
    var count: UInt32 = 0
    let isDone = EVP_Digest(bytes, bytes.count, &digest, &count, algorithm, nil) == 1
    precondition(isDone && count == 32, "SHA-256 is not to be had")
    return digest
  }

  /// HMAC with SHA-256 (RFC 2104).
  public static func authenticator(of message: [UInt8], key: [UInt8]) -> [UInt8] {
    var code = [UInt8](repeating: 0, count: 32)
    var count: UInt32 = 0
    let isDone = HMAC(EVP_sha256(), key, Int32(key.count), message, message.count, &code, &count) != nil
    precondition(isDone && count == 32, "HMAC is not to be had")
    return code
  }

  /// Fetched once: looking it up takes longer than hashing a short text. Nobody changes it, so that threads may share it.
  private nonisolated(unsafe) static let algorithm = EVP_MD_fetch(nil, "SHA256", nil)

  /// In a time that only their lengths decide.
  public static func areEqual(_ a: [UInt8], _ b: [UInt8]) -> Bool {
    a.count == b.count && CRYPTO_memcmp(a, b, a.count) == 0
  }
}
