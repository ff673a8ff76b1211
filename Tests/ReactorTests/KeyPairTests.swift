import TLS
import TestSupport
import Testing
import Wire

@Suite("A pair of keys on P-256")
struct KeyPairTests {
  @Test("is written as PKCS#8 that OpenSSL reads, and that signs for the pair's point")
  func pem() throws {
    let pair = try KeyPair()
    let signing = try SigningKey(pem: pair.pem)
    #expect(signing.algorithm == .es256)
    #expect(signing.publicPoint == pair.publicPoint)
    let signature = try signing.signES256([1, 2, 3])
    #expect(try VerifyingKey(publicPoint: pair.publicPoint).verifies(signature, of: [1, 2, 3]))
    #expect(try VerifyingKey(pem: pair.pem).verifies(signature, of: [1, 2, 3]))
    #expect(try !VerifyingKey(publicPoint: KeyPair().publicPoint).verifies(signature, of: [1, 2, 3]))
  }

  @Test("is written as OpenSSL's command writes it")
  func pemOfCommand() throws {
    let files = try TestCertificates.make()
    let pem = String(decoding: try KeyPair().pem, as: UTF8.self)
    try files.run(
      """
      printf '%s' '\(pem)' > pair.pem
      openssl pkey -check -noout -in pair.pem && openssl pkey -in pair.pem -out again.pem && cmp pair.pem again.pem
      """)
  }

  @Test("is another each time")
  func fresh() throws {
    #expect(try Set((0..<20).map { _ in try KeyPair().publicPoint }).count == 20)
  }

  /// SEC 2 §2.4.2: the base point and its negative.
  @Test("is made of a number from 1 to the group's order - 1")
  func range() throws {
    func point(_ number: String) throws -> String {
      let bytes = hex(number)
      return String(decoding: try KeyPair(privateKey: bytes).publicPoint.hexText, as: UTF8.self)
    }
    let x = "6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
    let zeros = String(repeating: "0", count: 56)
    #expect(
      try point(zeros + "00000001") == "04" + x + "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5")
    #expect(
      try point("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632550")
        == "04" + x + "b01cbd1c01e58065711814b583f061e9d431cca994cea1313449bf97c840ae0a")
    let refusal = CredentialError(file: nil, reason: "the bytes are no private key of P-256")
    for wrong in [
      zeros + "00000000", "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551",
      String(repeating: "f", count: 64), zeros, zeros + "0000000001", "",
    ] {
      #expect(throws: refusal) { try point(wrong) }
    }
  }

  private func hex(_ digits: String) -> [UInt8] {
    let values = digits.utf8.compactMap(\.hexValue)
    return stride(from: 0, to: values.count, by: 2).map { values[$0] << 4 | values[$0 + 1] }
  }

  @Test("has no point for an RSA key")
  func rsa() throws {
    #expect(try SigningKey(pem: SelfSignedCertificates.privateKey(.rsa)).publicPoint == nil)
  }

  @Test("verifies with a point only if that is on the curve")
  func wrongPoints() throws {
    let point = try KeyPair().publicPoint
    var bent = point
    bent[64] ^= 1
    let wrongPoints: [[UInt8]] = [bent, point.dropLast(), point + [0], [6] + point.dropFirst(), [0], []]
    for wrong in wrongPoints {
      #expect(throws: CredentialError(file: nil, reason: "the public key is no point of P-256")) {
        try VerifyingKey(publicPoint: wrong)
      }
    }
  }

  /// RFC 8292 §2.4.
  @Test("verifies the token of the VAPID specification by its point")
  func vapid() throws {
    let signed =
      "eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiJ9.eyJhdWQiOiJodHRwczovL3B1c2guZXhhbXBsZS5uZXQiLCJleHAiOjE0NTM1MjM3NjgsInN1Yi"
      + "I6Im1haWx0bzpwdXNoQGV4YW1wbGUuY29tIn0"
    let signature = "i3CYb7t4xfxCDquptFOepC9GAu_HLGkMlMuCGSK2rpiUfnK9ojFwDXb1JrErtmysazNjjvW2L9OkSSHzvoD1oA"
    let point = "BA1Hxzyi1RUM1b5wjxsn7nGxAszw2u61m164i3MrAIxHF6YK5h4SDYic-dRuU_RCPCfA5aq9ojSwk5Y2EmClBPs"
    let key = try VerifyingKey(publicPoint: #require(Base64URL.decode(Array(point.utf8))))
    let raw = try #require(Base64URL.decode(Array(signature.utf8)))
    #expect(key.verifies(raw, of: Array(signed.utf8)))
    #expect(!key.verifies(raw, of: Array(signed.utf8) + [0]))
  }
}
