import Foundation
import Reactor
import TLS
import TestSupport
import Testing
import Wire

@Suite struct CredentialTests {
  let files: TestCertificates

  init() throws { files = try TestCertificates.make() }

  @Test("a client certificate is read from each of its forms, with its end and Apple topics")
  func identities() throws {
    let identities = [
      try Identity.pem(files.client, key: files.clientKey), try Identity.pem(files.clientCombined),
      try Identity.pem(files.client, key: files.clientEncryptedKey, passphrase: files.passphrase),
      try Identity.pkcs12(files.clientP12, passphrase: files.passphrase),
      try Identity.pkcs12(files.clientLegacyP12, passphrase: files.passphrase),
    ]
    for identity in identities {
      #expect(identity.topics == ["com.example.app", "com.example.app.voip"])
      let days = Double(identity.notAfter) / 86400 - Date().timeIntervalSince1970 / 86400
      #expect((29...31).contains(days))
    }
  }

  @Test("a wrong identity names the file and the rule")
  func wrongIdentities() throws {
    func reason(_ body: () throws -> Identity) -> String {
      do {
        _ = try body()
        return "accepted"
      } catch { return "\(error)".replacing(files.folder + "/", with: "") }
    }
    #expect(reason { try .pem(files.path("none.pem")) } == "none.pem: cannot be read (open: No such file or directory)")
    #expect(reason { try .pem(files.clientKey) } == "client.key: holds no certificate in PEM form")
    #expect(reason { try .pem(files.client) } == "client.pem: holds no private key in PEM form")
    #expect(
      reason { try .pem(files.client, key: files.clientEncryptedKey) }
        == "client-encrypted.key: the private key needs a passphrase")
    #expect(
      reason { try .pem(files.client, key: files.clientEncryptedKey, passphrase: "wrong") }
        == "client-encrypted.key: the passphrase does not open the private key")
    #expect(
      reason { try .pem(files.client, key: files.serverKey) }
        == "client.pem: the private key does not belong to the certificate")
    #expect(reason { try .pkcs12(files.client) } == "client.pem: is no PKCS#12 archive")
    for archive in [files.clientP12, files.clientLegacyP12] {
      #expect(reason { try .pkcs12(archive, passphrase: "wrong") }.hasSuffix(": the passphrase does not open the archive"))
    }
  }

  @Test("ES256 signatures are 64 raw bytes that OpenSSL's command verifies")
  func es256() throws {
    let key = try SigningKey(path: files.p8)
    #expect(key.algorithm == .es256)
    for round in 0..<8 {
      let message = Array("message \(round)".utf8)
      let raw = try key.signES256(message)
      #expect(raw.count == 64)
      try verify(message, signature: der(raw), key: files.p8)
    }
    #expect(throws: CredentialError.self) { try key.signRS256([1]) }
  }

  @Test("RS256 signatures are verified by OpenSSL's command")
  func rs256() throws {
    let key = try SigningKey(path: files.rsaKey)
    #expect(key.algorithm == .rs256)
    try verify([1, 2, 3], signature: key.signRS256([1, 2, 3]), key: files.rsaKey)
    #expect(throws: CredentialError.self) { try key.signES256([1]) }
  }

  @Test("a wrong signing key names the file and the rule, never its contents")
  func wrongKeys() throws {
    func reason(_ path: String) -> String {
      do {
        _ = try SigningKey(path: path)
        return "accepted"
      } catch { return error.reason }
    }
    #expect(reason(files.p384Key) == "the elliptic-curve key is not on the curve P-256 that ES256 needs")
    #expect(reason(files.client) == "holds no private key in PEM form")
    #expect(reason(files.clientEncryptedKey) == "the private key needs a passphrase")
    #expect(throws: CredentialError(file: nil, reason: "holds no private key in PEM form")) { try SigningKey(pem: []) }
    #expect(throws: CredentialError(file: "k", reason: "holds no private key in PEM form")) {
      try SigningKey(pem: Array("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n".utf8), file: "k")
    }
  }

  @Test(
    "base64url is what RFC 7515 says",
    arguments: [([], ""), ([0], "AA"), ([3, 236, 255, 224, 193], "A-z_4ME"), ([255, 255], "__8")])
  func base64url(bytes: [UInt8], text: String) {
    #expect(Base64URL.encode(bytes) == Array(text.utf8))
  }

  private func verify(_ message: [UInt8], signature: [UInt8], key: String) throws {
    let name = UUID().uuidString
    try Data(message).write(to: URL(fileURLWithPath: files.path(name + ".message")))
    try Data(signature).write(to: URL(fileURLWithPath: files.path(name + ".signature")))
    try files.run(
      "openssl pkey -in \(key) -pubout -out \(name).pub && openssl dgst -sha256 -verify \(name).pub -signature \(name).signature \(name).message"
    )
  }

  /// SEQUENCE of two INTEGERs.
  private func der(_ raw: [UInt8]) -> [UInt8] {
    func integer(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
      var digits = Array(bytes.drop { $0 == 0 })
      if digits.isEmpty || digits[0] >= 0x80 { digits.insert(0, at: 0) }
      return [2, UInt8(digits.count)] + digits
    }
    let body = integer(raw[..<32]) + integer(raw[32...])
    return [0x30, UInt8(body.count)] + body
  }
}
