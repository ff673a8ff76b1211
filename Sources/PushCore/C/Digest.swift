import COpenSSL

/// SHA-256, HMAC, and comparison in constant time.
public enum Digest {
  public static func sha256(_ bytes: [UInt8]) -> [UInt8] {
    unsafe [UInt8](unsafeUninitializedCapacity: 32) { digest, count in
      unsafe shim_sha256(bytes, bytes.count, digest.baseAddress)
      count = 32
    }
  }

  /// HMAC with SHA-256 (RFC 2104).
  public static func authenticator(of message: [UInt8], key: [UInt8]) -> [UInt8] {
    var code = [UInt8](repeating: 0, count: 32)
    var count: UInt32 = 0
    let isDone = unsafe HMAC(EVP_sha256(), key, Int32(key.count), message, message.count, &code, &count) != nil
    precondition(isDone && count == 32, "HMAC is unavailable")
    return code
  }

  /// Compares in a time that depends only on the lengths.
  public static func areEqual(_ a: [UInt8], _ b: [UInt8]) -> Bool {
    unsafe a.count == b.count && CRYPTO_memcmp(a, b, a.count) == 0
  }
}
