import PushCore
@testable import TLS
import Testing
import Wire

/// RFC 8291 §5 and appendix A.
@Suite("An encrypted web push message")
struct MessageEncryptionTests {
  private let receiver: KeyPair
  private let sender: KeyPair
  private let auth = bytes("BTBZMqHH6r4Tts7J_aSIgg")
  private let salt = bytes("DGv6ra1nlYgDCS1FRnbzlw")
  private static let watermelon =
    "8pfeW0KbunFT06SuDKoJH9Ql87S1QUrdirN6GcG7sFz1y1sqLgVi1VhjVkHsUoEsbI_0LpXMuGvnzQ"

  init() throws {
    receiver = try KeyPair(privateKey: bytes("q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"))
    sender = try KeyPair(privateKey: bytes("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
  }

  private func encrypted(_ plaintext: [UInt8], padding: Int = 0) throws -> [UInt8] {
    try MessageEncryption.encrypt(
      plaintext, publicKey: receiver.publicPoint, auth: auth, sender: sender, salt: salt, padding: padding)
  }

  /// A body of the sender's with the given records, each with its delimiter.
  private func body(recordSize: UInt8, _ records: [[UInt8]]) throws -> [UInt8] {
    let secret = try #require(sender.sharedSecret(with: receiver.publicPoint))
    let head = Array("WebPush: info\0".utf8)
    let material = HKDF.expand(HKDF.extract(secret, salt: auth), info: head + receiver.publicPoint + sender.publicPoint)
    let contentSecret = HKDF.extract(material, salt: salt)
    let key = HKDF.expand(contentSecret, info: Array("Content-Encoding: aes128gcm\0".utf8))
    let nonce = HKDF.expand(contentSecret, info: Array("Content-Encoding: nonce\0".utf8))
    var body = salt + [0, 0, 0, recordSize, 65] + sender.publicPoint
    for (number, record) in records.enumerated() {
      var own = Array(nonce[..<12])
      own[11] ^= UInt8(number)
      let start = body.count
      body += record
      #expect(AES128GCM.seal(&body, from: start, key: Array(key[..<16]), nonce: own))
    }
    return body
  }

  @Test("has the points that the RFC gives for its private keys")
  func points() {
    #expect(
      receiver.publicPoint
        == bytes("BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"))
    #expect(
      sender.publicPoint
        == bytes("BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8"))
    #expect(sender.sharedSecret(with: receiver.publicPoint) == bytes("kyrL1jIIOHEzg3sM2ZWRHDRB62YACZhhSlknJ672kSs"))
    #expect(receiver.sharedSecret(with: sender.publicPoint) == sender.sharedSecret(with: receiver.publicPoint))
  }

  @Test(
    "is the RFC's body with the RFC's key and salt, and is read again",
    arguments: [
      ("When I grow up, I want to be a watermelon", 0, watermelon), ("", 0, "p1gPSRS1XkN9hEVCx_GBFHA"),
      ("hi", 8, "zZa5NWLSmhYhvNP8Er72x_W_BA_YQGvZLb9S"), ("축구 ⚽", 0, "SUku39d-uvS7AdEqWqqDMIxJCOuIFI0jxg9g"),
    ])
  func vectors(text: String, padding: Int, ciphertext: String) throws {
    let body = try encrypted(Array(text.utf8), padding: padding)
    #expect(body == salt + [0, 0, 16, 0, 65] + sender.publicPoint + bytes(ciphertext))
    #expect(receiver.decrypt(body, auth: auth) == Array(text.utf8))
  }

  @Test("has 4,096 bytes at most")
  func longest() throws {
    let plaintext = [UInt8](repeating: UInt8(ascii: "a"), count: MessageEncryption.longestPlaintext)
    let body = try encrypted(plaintext)
    #expect(body.count == 4096)
    let digest = String(decoding: Digest.sha256(body).hexText, as: UTF8.self)
    #expect(digest == "a9e84efbfe3cbbd3deb4e24870b13d42f4657b35bbdc6c279af04a8055d14354")
    #expect(receiver.decrypt(body, auth: auth) == plaintext)
    let tooLong = CredentialError(file: nil, reason: "the message has more than 3993 bytes")
    #expect(throws: tooLong) { try encrypted(plaintext + [0]) }
    #expect(throws: tooLong) { try encrypted(plaintext, padding: 1) }
  }

  @Test("has a new key and salt each time")
  func fresh() throws {
    var seen: Set<[UInt8]> = []
    for count in 0..<50 {
      let plaintext = [UInt8](repeating: 7, count: count)
      let body = try MessageEncryption.encrypt(plaintext, publicKey: receiver.publicPoint, auth: auth)
      #expect(receiver.decrypt(body, auth: auth) == plaintext)
      seen.insert(Array(body[..<16]))
      seen.insert(Array(body[21..<86]))
    }
    #expect(seen.count == 100)
  }

  @Test("is not made for keys that are not usable")
  func wrongKeys() throws {
    let unusable = CredentialError(file: nil, reason: "the subscription's keys are not usable")
    for point in wrongPoints {
      #expect(throws: unusable) { try MessageEncryption.encrypt([1], publicKey: point, auth: auth) }
    }
    for auth in [[], Array(auth.dropLast()), auth + [0]] {
      #expect(throws: unusable) { try MessageEncryption.encrypt([1], publicKey: receiver.publicPoint, auth: auth) }
    }
  }

  /// Not on the curve, of another form, of another length, at infinity.
  private var wrongPoints: [[UInt8]] {
    var bent = receiver.publicPoint
    bent[64] ^= 1
    let rest = receiver.publicPoint.dropFirst()
    return [
      bent, [6] + rest, [7] + rest, [2] + rest, [2] + rest.prefix(32), Array(rest), receiver.publicPoint + [0], [], [0],
      [4] + [UInt8](repeating: 0, count: 64), [4] + [UInt8](repeating: 0xFF, count: 64),
    ]
  }

  @Test("is refused if a byte is missing, added or changed, or for another secret")
  func damaged() throws {
    let body = try encrypted(Array("When I grow up".utf8), padding: 3)
    for count in 0..<body.count { #expect(receiver.decrypt(Array(body[..<count]), auth: auth) == nil, "\(count)") }
    #expect(receiver.decrypt(body + [0], auth: auth) == nil)
    // The record size is not authenticated: any that holds the record is right.
    for index in body.indices where !(16..<20).contains(index) {
      for bit in 0..<8 {
        var damaged = body
        damaged[index] ^= 1 << UInt8(bit)
        #expect(receiver.decrypt(damaged, auth: auth) == nil, "bit \(bit) of byte \(index)")
      }
    }
    #expect(receiver.decrypt(body, auth: salt) == nil)
    #expect(receiver.decrypt(body, auth: []) == nil)
    #expect(sender.decrypt(body, auth: auth) == nil)
    #expect(try KeyPair().decrypt(body, auth: auth) == nil)
  }

  @Test("is refused if the sender's point is none")
  func wrongSender() throws {
    let body = try encrypted([1])
    for point in wrongPoints {
      let altered = body[..<20] + [UInt8(point.count)] + point + body[86...]
      #expect(receiver.decrypt(Array(altered), auth: auth) == nil)
    }
  }

  @Test("may have several records, the delimiter of the last of which is 2")
  func records() throws {
    let read = { (size: UInt8, records: [[UInt8]]) in receiver.decrypt(try body(recordSize: size, records), auth: auth) }
    #expect(try read(20, [[8, 9, 10, 1], [11, 2]]) == [8, 9, 10, 11])
    #expect(try read(20, [[8, 9, 10, 1], [11, 12, 13, 2]]) == [8, 9, 10, 11, 12, 13])
    #expect(try read(18, [[8, 1], [1, 0], [9, 1], [2]]) == [8, 9])
    #expect(try read(20, [[8, 2, 0, 0]]) == [8])
    #expect(try read(20, [[0, 0, 2]]) == [0, 0])
    #expect(try read(20, [[8, 9, 10, 2], [11, 2]]) == nil, "a last record that is not the last")
    #expect(try read(20, [[8, 9, 10, 1]]) == nil, "the last record is missing")
    #expect(try read(20, [[8, 9, 10, 3]]) == nil, "another delimiter")
    #expect(try read(20, [[0, 0, 0, 0]]) == nil, "only padding")
    #expect(try read(20, [[]]) == nil, "not even a delimiter")
    #expect(try read(20, []) == nil, "no record")
    #expect(try read(17, [[2]]) == nil, "a record size without room for a byte")
    #expect(try read(0, [[2]]) == nil)
    #expect(try read(19, [[8, 9, 10, 1], [11, 2]]) == nil, "another record size than the sender's")
  }

  /// RFC 8188 §3.
  @Test(
    "has the content coding of the examples of RFC 8188",
    arguments: [
      ("", "yqdlZ-tYemfogSmv7Ws5PQ", "I1BsxtFttlv3u_Oo94xnmwAAEAAA-NAVub2qFgBEuQKRapoZu-IxkIva3MEB1PD-ly8Thjg"),
      (
        "a1", "BO3ZVPxUlnLORbVGMpbT1Q",
        "uNCkWiNYzKTnBN9ji3-qWAAAABkCYTHOG8chz_gnvgOqdGYovxyjuqRyJFjEDyoF1Fvkj6hQPdPHI51OEUKEpgz3SsLWIqS_uA"
      ),
    ])
  func contentCoding(keyID: String, material: String, body: String) {
    let body = bytes(body)
    let plaintext = EncryptedContent.decode(body) { $0.elementsEqual(keyID.utf8) ? bytes(material) : nil }
    #expect(plaintext == Array("I am the walrus".utf8))
    #expect(EncryptedContent.decode(body) { _ in nil } == nil)
    #expect(EncryptedContent.decode(body) { _ in [] } == nil)
  }

  @Test("has one record as in the first example of RFC 8188")
  func encode() {
    let body = bytes("I1BsxtFttlv3u_Oo94xnmwAAEAAA-NAVub2qFgBEuQKRapoZu-IxkIva3MEB1PD-ly8Thjg")
    let made = EncryptedContent.encode(
      Array("I am the walrus".utf8), material: bytes("yqdlZ-tYemfogSmv7Ws5PQ"), salt: Array(body[..<16]), keyID: [])
    #expect(made == body)
  }
}

private func bytes(_ base64url: String) -> [UInt8] { Base64URL.decode(Array(base64url.utf8)) ?? [] }
