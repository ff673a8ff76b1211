import PushCore
import Testing

@Suite struct TargetTests {
  static let hex = "0123456789abcdefABCDEF0123456789abcdef0123456789abcdef0123456789"

  func classified(_ text: String) -> Target? { try? Target.classify(Array(text.utf8)).get() }

  func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

  @Test("each form of a target is recognised, and only by its form")
  func forms() {
    let id = RegistryID.make(.registration, high: .max, low: 0)
    let key = RegistryID.make(.group, high: 0, low: 1)
    #expect(classified("/topics/news") == .topic(bytes("news")))
    #expect(classified("/topics/a-Z_0.9~%2F") == .topic(bytes("a-Z_0.9~%2F")))
    #expect(classified("/users/anna+x@example.com") == .user(bytes("anna+x@example.com")))
    for user in ["김철수", "o'brien@example.com", "+82 10 1234 5678", "uid#1", "a/b", "kim!@x.kr", "100%", "%zz", "../x", "é"] {
      #expect(classified("/users/" + user) == .user(bytes(user)))
      let escaped = user.utf8.map { "%" + ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
      #expect(classified("/users/" + escaped) == .user(bytes(user)))
    }
    #expect(classified("/users/%2541%41") == .user(bytes("%41A")))
    for user in ["a\u{0}", "a\nb", "a\u{7F}", "a\u{85}b", "%00", "%0a", "%c2%85", "%ff", "%c3"] {
      #expect(classified("/users/" + user) == nil)
    }
    #expect(classified("/all") == .all)
    for text in ["/all/", "/al", "/alls", "/All", "/all "] { #expect(classified(text) == nil) }
    #expect(classified("all") == .fcm(token: bytes("all")[...]))
    #expect(classified("apns:00") == .apns(token: bytes("00")[...]))
    #expect(classified("apns:00Ff") == .apns(token: bytes("00ff")[...]))
    #expect(classified("fcm:" + Self.hex) == .fcm(token: bytes(Self.hex)[...]))
    #expect(classified("fcm:a:b") == .fcm(token: bytes("a:b")[...]))
    #expect(Target.classify(id) == .success(.registration(id)))
    #expect(Target.classify(key) == .success(.group(key)))
    #expect(classified(Self.hex) == .apns(token: bytes(Self.hex.lowercased())[...]))
    #expect(
      classified("bk3RNwTe3H0:CI2k_HHwgIpoDKCIZvvDMExUdFQ3P1")
        == .fcm(token: bytes("bk3RNwTe3H0:CI2k_HHwgIpoDKCIZvvDMExUdFQ3P1")[...]))
    #expect(classified("a.b%20.%3") == .fcm(token: bytes("a.b%20.%3")[...]))
    #expect(classified("xyz") == .fcm(token: bytes("xyz")[...]))
  }

  static let fid = "cXyZ0123456789_-AbCdEf"

  @Test("a token of FCM has letters, digits and a few signs, and no other byte")
  func bytesOfTokens() {
    let allowed = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_:.%-".utf8)
    for byte in UInt8.min ... .max {
      let token = Array("fcm:a".utf8) + [byte] + Array("z".utf8)
      let isAccepted = if case .success(.fcm(token: Array(token[4...])[...])) = Target.classify(token) { true } else { false }
      #expect(isAccepted == allowed.contains(byte), "\(byte)")
    }
  }

  @Test("beside tokens FCM accepts an installation, one of its own topics, or a condition over them")
  func addresses() {
    for first in ["c", "d", "e", "f"] {
      let id = "fid:" + first + Self.fid.dropFirst()
      #expect(classified(id) == .fcm(token: bytes(id)[...]))
    }
    // In the form of a token, it is a token.
    #expect(classified(Self.fid) == .fcm(token: bytes(Self.fid)[...]))
    #expect(classified("fcm:" + Self.fid) == .fcm(token: bytes(Self.fid)[...]))
    #expect(classified("fcm:/topics/a-Z_0.9~%2F") == .fcmTopics(bytes("/topics/a-Z_0.9~%2F")[...]))
    #expect(classified("fcm:/topics/" + String(repeating: "t", count: 900)) != nil)
    #expect(classified("fcm:/topics/" + String(repeating: "t", count: 901)) == nil)
    for condition in ["'a' in topics", "('a' in topics || 'b' in topics) && 'c' in topics", "!('a' in topics)"] {
      #expect(classified("fcm:" + condition) == .fcmTopics(bytes(condition)[...]))
    }
    let six = (0..<6).map { "'t\($0)' in topics" }.joined(separator: " || ")
    #expect(classified("fcm:" + six) == nil)
  }

  @Test("a channel of APNs has 1 to 256 characters of base64, and nothing else")
  func channels() {
    for id in ["A", "dHN0LXNyY2gtY2hubA==", "+/=", String(repeating: "z", count: 256)] {
      #expect(classified("apns-channel:" + id) == .channel(bytes(id)[...]))
    }
    for id in ["", String(repeating: "z", count: 257), "a b", "a\n", "../a", "é", "a?b", "%2B"] {
      guard case .failure(let rejection) = Target.classify(bytes("apns-channel:" + id)) else {
        Issue.record("accepted: \(id.prefix(20))")
        continue
      }
      #expect(rejection.code == .invalidRegistration && rejection.reason.contains("1 to 256 characters of base64"))
    }
    #expect(classified("APNS-channel:A") == .fcm(token: bytes("APNS-channel:A")[...]))
  }

  @Test("hexadecimal digits are an APNs token from 64 to 200 of them, in pairs")
  func digits() {
    func digits(_ count: Int) -> Target? { classified(String(repeating: "a", count: count)) }
    #expect(digits(63) == .fcm(token: Array(repeating: 0x61, count: 63)[...]))
    #expect(digits(64) == .apns(token: Array(repeating: 0x61, count: 64)[...]))
    #expect(digits(65) == nil)
    #expect(digits(199) == nil)
    #expect(digits(200) == .apns(token: Array(repeating: 0x61, count: 200)[...]))
    #expect(digits(201) == .fcm(token: Array(repeating: 0x61, count: 201)[...]))
    #expect(digits(4096) != nil)
    #expect(digits(4097) == nil)
    #expect(classified("apns:" + String(repeating: "a", count: 200)) != nil)
    #expect(classified("apns:" + String(repeating: "a", count: 202)) == nil)
  }

  @Test("a topic's name has up to 899 characters, a user's id up to 255")
  func lengths() {
    #expect(classified("/topics/" + String(repeating: "t", count: 899)) != nil)
    #expect(classified("/topics/" + String(repeating: "t", count: 900)) == nil)
    #expect(classified("/users/" + String(repeating: "u", count: 255)) != nil)
    #expect(classified("/users/" + String(repeating: "u", count: 256)) == nil)
  }

  static let hostile = [
    "a\rb", "a\nb", "a\r\nb", "a\u{0}b", "a\u{1B}b", "a b", " a", "a ", "a/b", "../a", "..", "a..b", "%2e%2e", "%2E", "a%2Fb",
    "fcm:..", "..%2f/", "/3/device/x", "a?b", "a#b",
    "é", "a\u{202E}b",
    "a\u{2028}b", "a\\b", "a\"b", "a'b", "a;b", "a,b", "a@b", "a~b", "a=b", "apns:", "apns:0", "apns:0g", "apns:00\r\n",
    "apns:../a", "apns:%2e",
    "fcm:", "fcm:a b", "/topics/", "/topics", "/topics/a b", "/topics/a/b", "/topics/é", "/topics/a\u{0}",
    "/topic/a", "/users/",
    "/users/a\n", "/", "//", "pf1r~0123456789abcdefghjkmnpqr", "pf1r~8zzzzzzzzzzzzzzzzzzzzzzzzz",
    "pf1r~0000000000000000000000000l",
    "pf1x~00000000000000000000000000", "PF1R~00000000000000000000000000", hex + "\n", hex + "/", hex + "?", hex + "#",
    "%2e%2e/" + hex,
  ]

  static let wrongAddresses = [
    "fcm:/topics/", "fcm:/topics/a b", "fcm:/topics/a/b", "fcm:/users/a", "fcm://", "fcm:/", "fcm:'a' in topic",
    "fcm:'a\nb' in topics", "fcm:(", "fcm:!", "fcm: 'a' in topics", "fcm:fid:cXyZ0123456789_-AbCdEf", "fid:",
    "fid:cXyZ0123456789_-AbCdE", "fid:cXyZ0123456789_-AbCdEfg", "fid:bXyZ0123456789_-AbCdEf", "fid:gXyZ0123456789_-AbCdEf",
    "fid:CXyZ0123456789_-AbCdEf", "fid:cXyZ0123456789_-AbCdE:", "fid:cXyZ0123456789_-AbCdE.", "fid:cXyZ0123456789_-AbCdE\n",
    "fid:cXyZ0123456789_-AbCdé",
  ]

  @Test(
    "a target with characters unsafe for paths, headers or logs is refused, and not repeated in the reason",
    arguments: hostile + wrongAddresses)
  func refused(text: String) {
    guard case .failure(let rejection) = Target.classify(Array(text.utf8)) else {
      Issue.record("accepted")
      return
    }
    #expect(rejection.code == .invalidRegistration)
    #expect(rejection.reason.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F })
    #expect(text.utf8.count < 12 || !rejection.reason.contains(text))
  }

  @Test("an id of the registry has 128 bits and its own two prefixes")
  func registryIDs() {
    #expect(
      String(decoding: RegistryID.make(.registration, high: 0, low: 0), as: UTF8.self) == "pf1r~00000000000000000000000000")
    #expect(
      String(decoding: RegistryID.make(.group, high: .max, low: .max), as: UTF8.self) == "pf1g~7zzzzzzzzzzzzzzzzzzzzzzzzz")
    #expect(String(decoding: RegistryID.make(.group, high: 0, low: 33), as: UTF8.self) == "pf1g~00000000000000000000000011")
    var random = SeededGenerator(seed: 3)
    for _ in 0..<500 {
      let id = RegistryID.make(.registration, high: random.next(), low: random.next())
      #expect(RegistryID.kind(of: id) == .registration)
      #expect(RegistryID.kind(of: Array(id.dropLast())) == nil)
      #expect(RegistryID.kind(of: id + [0x30]) == nil)
    }
  }
}
