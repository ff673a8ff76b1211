import TLS
import Testing

/// RFC 6979 §A.2.5: P-256 with SHA-256.
@Suite("A deterministic ES256 signature")
struct DeterministicSignatureTests {
  private let pem = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgya+p2EW6dRZrXCFX
    Z7HWk05Qw9s26JsSe4piKxIPZyGhRANCAARg/tS6JVqdMclh63TGNW1owEm4kjth
    +mzmaWIuYPKftnkD/hAIuLyZpBrp6VYovGTy8bIMLX6fUXejwpTURiKZ
    -----END PRIVATE KEY-----
    """

  @Test(
    "is the one that RFC 6979 gives",
    arguments: [
      (
        "sample",
        "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716"
          + "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8"
      ),
      (
        "test",
        "f1abb023518351cd71d881567b1ea663ed3efcf6c5132b354f28d3b0b7d38367"
          + "019f4113742a2b14bd25926b49c649155f267e60d3814b4c0cc84250e46f0083"
      ),
    ])
  func vectors(message: String, expected: String) throws {
    let signature = try SigningKey(pem: Array(pem.utf8)).signES256(Array(message.utf8))
    #expect(signature.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined() == expected)
  }

  @Test("is the same from each copy of the key, another for each message, and verified by the public key")
  func repeats() throws {
    let (one, other) = (try SigningKey(pem: Array(pem.utf8)), try SigningKey(pem: Array(pem.utf8)))
    let verifier = try VerifyingKey(pem: Array(pem.utf8))
    var seen: Set<[UInt8]> = []
    for length in 0..<100 {
      let message = (0..<length).map { UInt8($0) }
      let signature = try one.signES256(message)
      #expect(try other.signES256(message) == signature)
      #expect(verifier.verifies(signature, of: message))
      seen.insert(signature)
    }
    #expect(seen.count == 100)
  }
}
