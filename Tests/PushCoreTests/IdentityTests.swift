import Testing

@testable import PushCore

@Suite struct IdentityTests {
  static func hex(_ text: [UInt8]) -> String {
    var hash = SHA1()
    hash.append(text.span)
    let (a, b, c, d, e) = hash.finish()
    return [a, b, c, d, e].map { word in
      let digits = String(word, radix: 16)
      return String(repeating: "0", count: 8 - digits.count) + digits
    }.joined()
  }

  @Test(
    "SHA-1 gives the digests of RFC 3174 §7.3 and FIPS 180",
    arguments: [
      ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
      ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
      ("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "84983e441c3bd26ebaae4aa1f95129e5e54670f1"),
      (
        String(repeating: "0123456701234567012345670123456701234567012345670123456701234567", count: 10),
        "dea356a2cddd90c7a7ecedc5ebb563934f460452"
      ),
      (String(repeating: "a", count: 55), "c1c8bbdc22796e28c0e15163d20899b65621d65a"),
      (String(repeating: "a", count: 56), "c2db330f6083854c99d4b5bfb6e8f29f201be699"),
      (String(repeating: "a", count: 63), "03f09f5b158a7a8cdad920bddc29b81c18a551f5"),
      (String(repeating: "a", count: 64), "0098ba824b5c16427bd7a1122a5a442a25ec644d"),
      (String(repeating: "a", count: 65), "11655326c708d70319be2610e8a57d9a5b959d3b"),
      (String(repeating: "a", count: 119), "ee971065aaa017e0632a8ca6c77bb3bf8b1dfc56"),
      (String(repeating: "a", count: 1_000_000), "34aa973cd4c4daa4f61eeb2bdbad27316534016f"),
    ])
  func sha1Vectors(text: String, digest: String) { #expect(Self.hex(Array(text.utf8)) == digest) }

  @Test("a copied SHA-1 state works without the original")
  func sha1Copies() {
    var prefix = SHA1()
    prefix.append(Array("a".utf8).span)
    var copy = prefix
    copy.append(Array("bc".utf8).span)
    #expect(copy.finish().0 == 0xa999_3e36)
    prefix.append(Array("bc".utf8).span)
    #expect(prefix.finish().4 == 0x9cd0_d89d)
  }

  @Test("UUID version 5 gives RFC 9562's own example: www.example.com in the DNS namespace")
  func uuid5Vector() {
    var hash = SHA1()
    let namespace: [UInt8] = [0x6b, 0xa7, 0xb8, 0x10, 0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8]
    hash.append(namespace.span)
    hash.append(Array("www.example.com".utf8).span)
    let (a, b, c, d, _) = hash.finish()
    let text = UUIDText.canonical(high: UInt64(a) << 32 | UInt64(b), low: UInt64(c) << 32 | UInt64(d), version: 5)
    #expect(String(decoding: text, as: UTF8.self) == "2ed6657d-e927-568b-95e1-2665a8aea6a2")
  }

  @Test("a message's apns-id on a device never changes, and differs from all others")
  func deviceIdentity() {
    let token = Array(String(repeating: "ab", count: 32).utf8)
    let first = DeviceIdentity.apnsID(messageID: Array("m-1".utf8), token: token)
    #expect(String(decoding: first, as: UTF8.self) == "dfab45c7-4afe-587c-baa8-aa42e4fde4ca")
    #expect(DeviceIdentity(messageID: Array("m-1".utf8)).apnsID(token: token.span) == first)
    #expect(UUIDText.isCanonical(first))
    #expect(DeviceIdentity.apnsID(messageID: Array("m-2".utf8), token: token) != first)
    #expect(DeviceIdentity.apnsID(messageID: Array("m-1".utf8), token: token.dropLast() + [0x30]) != first)
    // The two parts are separated.
    let (a, b) = (Array("a".utf8), Array("b".utf8))
    #expect(DeviceIdentity.apnsID(messageID: a + b, token: a) != DeviceIdentity.apnsID(messageID: a, token: b + a))
  }

  /// By Python's hashlib and uuid.
  @Test(
    "an apns-id is the UUID of the token's bytes in the message's namespace, or of its text if it is not hexadecimal",
    arguments: [
      ("abababababababababababababababababababababababababababababababab", "dfab45c7-4afe-587c-baa8-aa42e4fde4ca"),
      ("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "5fb4490c-45d3-549d-8c38-56819498cc63"),
      ("ABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABAB", "4675daab-ec1c-5352-8c7d-410a5cf9cfd9"),
      ("ababababababababababababababababababababababababababababababababab", "e3528cef-843d-52a7-b390-d2bdb81c6045"),
      ("", "316ea345-5f38-5c21-9e5d-e92f5866a3fb"),
      ("abababababababababababababababababababababababababababababababag", "158a9652-cd74-564c-a69a-07d49d3e15dc"),
      ("fcm:token/_-:APA91b", "4f9c05b9-07ad-5d09-ae58-0ca53960275d"),
      (String(repeating: "01234567", count: 25), "d3ec1e42-a865-5213-b62b-6e0ca037ea7f"),
    ])
  func deviceIdentityVectors(token: String, id: String) {
    #expect(
      String(decoding: DeviceIdentity.apnsID(messageID: Array("m-1".utf8), token: Array(token.utf8)), as: UTF8.self) == id)
  }

  @Test("a random UUID is canonical, of version 4, and not the last one")
  func randomUUID() {
    let (one, two) = (UUIDText.random(), UUIDText.random())
    #expect(one != two)
    for text in [one, two] {
      #expect(UUIDText.isCanonical(text))
      #expect(text[14] == UInt8(ascii: "4"))
      #expect("89ab".utf8.contains(text[19]))
    }
  }

  @Test(
    "only 36 lower-case bytes with hyphens in their places are a canonical UUID",
    arguments: [
      "2ED6657D-e927-568b-95e1-2665a8aea6a2", "2ed6657de927568b95e12665a8aea6a2", "2ed6657d-e927-568b-95e1-2665a8aea6a",
      "2ed6657d-e927-568b-95e12-665a8aea6a2", "", "2ed6657d-e927-568b-95e1-2665a8aea6\r\n",
    ])
  func notCanonical(text: String) { #expect(!UUIDText.isCanonical(Array(text.utf8))) }

  @Test(
    "a time is spelled as RFC 3339 in UTC with milliseconds",
    arguments: [
      (0, "1970-01-01T00:00:00.000Z"), (1_795_209_720_123, "2026-11-20T21:22:00.123Z"),
      (951_782_400_000, "2000-02-29T00:00:00.000Z"), (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
      (1_709_251_200_000, "2024-03-01T00:00:00.000Z"), (4_107_542_399_001, "2100-02-28T23:59:59.001Z"),
      (4_107_542_400_000, "2100-03-01T00:00:00.000Z"), (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
      (Int64.max, "9999-12-31T23:59:59.999Z"), (-1, "1970-01-01T00:00:00.000Z"), (Int64.min, "1970-01-01T00:00:00.000Z"),
    ] as [(Int64, String)])
  func timestamps(milliseconds: Int64, text: String) {
    #expect(String(decoding: Timestamp.text(milliseconds), as: UTF8.self) == text)
  }

  @Test("a day counted from its date and back is the same day, for a thousand years")
  func dates() {
    for day in stride(from: Int64(0), to: 365_250, by: 13) {
      let text = String(decoding: Timestamp.text(day * 86_400_000), as: UTF8.self)
      let parts = text.prefix(10).split(separator: "-").compactMap { Int64($0) }
      #expect(Timestamp.days(year: parts[0], month: parts[1], day: parts[2]) == day)
    }
  }

  @Test("decimals are written like String's", arguments: [0, 9, 10, -1, -10, 1234567890, .max, .min] as [Int64])
  func decimals(value: Int64) {
    var bytes: [UInt8] = []
    bytes.appendDecimal(value)
    #expect(String(decoding: bytes, as: UTF8.self) == String(value))
  }
}
