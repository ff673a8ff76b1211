import Foundation
import PushCore
import TestSupport
import Testing

@testable import DeviceRegistry

/// Compares the schema of registry changes with their reader, and the schema of answers with their writer.
@Suite struct RegistrySchemaTests {
  static let file = "registry-change.schema.json"

  static func value(_ field: ChangeField, _ generator: inout RequestGenerator) -> JSONValue {
    if generator.one(in: generator.mischief) { return generator.arbitrary() }
    switch field {
    case .op: return .string(generator.pick(ChangeOperation.allCases).rawValue)
    case .platform: return generator.pick("apns", "fcm", "webpush")
    case .environment: return generator.pick("production", "sandbox")
    case .kind: return generator.pick("alert", "voip", "live_activity", "pushtotalk", "activity")
    case .token:
      return generator.pick(
        "00ff", "apns:00ff", "fcm:a", "fcm:", "a:b", RequestGenerator.hex, "pf1r~00000000000000000000000000",
        "fid:cXyZ0123456789_-AbCdEf", "fid:bXyZ0123456789_-AbCdEf", "fcm:fid:cXyZ0123456789_-AbCdEf", "fcm:/topics/a",
        "https://push.example/1", "https://", "webpush:e30", "webpush:e")
    case .subscription: return subscription(&generator)
    case .applicationServerKey:
      return generator.pick(publicKey, "0123456789abcDEF", "0123456789abcde", publicKey + "=", "BA")
    case .registration: return generator.pick("pf1r~00000000000000000000000000", "00ff")
    case .topic: return generator.pick("news", "/topics/news", "/topics/")
    case .topics: return generator.pick([[], ["a", "/topics/b"], ["a b"]])
    case .tokens, .registrationIDs: return generator.pick([["00ff"], ["a b", ""], []])
    case .registeredAt: return generator.pick("2026-11-20T21:22:00.123Z", "2026-11-20", "2026-02-31T00:00:60+09:00")
    case .user: return generator.pick("anna", "a b")
    case .users: return generator.pick([["anna"], []])
    case .group: return generator.pick(["7", 7, .number("7.0"), .number("7.5"), "pf1g~00000000000000000000000000"])
    default: return generator.pick("x", "雑", "")
    }
  }

  private static let publicKey = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"

  private static func subscription(_ generator: inout RequestGenerator) -> JSONValue {
    let endpoint: JSONValue = "https://push.example/1"
    let endpoints: [JSONValue] = [
      endpoint, endpoint, endpoint, "https://[::1]:8443/a?b=c", "http://push.example/1", "https://push.example",
      "https://user@push.example/", "https://push.example:0/", "https://push.example:65536/", "https://push.example/#a",
      "https://permanently-removed.invalid/fcm/send/x", "https://push.example/\u{e9}", 5,
    ]
    let keys: [JSONValue] = [
      ["p256dh": .string(publicKey), "auth": "BTBZMqHH6r4Tts7J_aSIgg"],
      ["p256dh": .string(publicKey), "auth": "BTBZMqHH6r4Tts7J/aSIgg=="],
      ["p256dh": .string(publicKey), "auth": "BTBZMqHH6r4Tts7J_aSIgh"],
      ["p256dh": .string("BB" + publicKey.dropFirst(2)), "auth": "BTBZMqHH6r4Tts7J_aSIgg"],
      ["auth": "BTBZMqHH6r4Tts7J_aSIgg"], [],
    ]
    let isGood = !generator.one(in: 8)
    return [
      "endpoint": isGood ? endpoint : generator.pick(endpoints), "expirationTime": .null,
      "keys": isGood ? keys[0] : generator.pick(keys),
    ]
  }

  static func change(seed: UInt64) -> String {
    var generator = RequestGenerator(seed: seed)
    let operation = generator.pick(ChangeOperation.allCases)
    var members: [(name: String, value: JSONValue)] = []
    if operation != .register || generator.one(in: 2) { members.append(("op", .string(operation.rawValue))) }
    let alternatives: [[ChangeField]] = [[.token, .registration, .installation], [.registrationIDs, .users]]
    var fields = operation.fields
    if operation != .register {
      for group in alternatives where !generator.one(in: 8) {
        let kept = generator.pick(group)
        fields.removeAll { group.contains($0) && $0 != kept }
      }
    }
    let isSubscription = generator.one(in: 3)
    if operation == .register, !generator.one(in: 8) {
      let foreign: [ChangeField] =
        isSubscription ? [.token, .environment, .kind, .activity] : [.subscription, .applicationServerKey]
      fields.removeAll(where: foreign.contains)
    }
    let often: Set<ChangeField> = [
      .app, .platform, .token, .subscription, .topic, .tokens, .notificationKey, .notificationKeyName, .group,
    ]
    for field in fields
    where often.contains(field) ? !generator.one(in: 15) : !generator.one(in: operation == .register ? 2 : 8) {
      let value = value(field, &generator)
      members.append((field.rawValue, field == .platform && isSubscription ? "webpush" : value))
    }
    if generator.one(in: generator.mischief) {
      let stray = generator.pick(ChangeField.allCases)
      if !members.contains(where: { $0.name == stray.rawValue }) { members.append((stray.rawValue, value(stray, &generator))) }
    }
    return JSONValue.object(members).text
  }

  @Test("schema and reader accept the same of 800 generated changes")
  func property() throws {
    let texts = (0..<800 as Range<UInt64>).map(Self.change)
    let verdicts = try SchemaJudge.shared.judge(texts.map { (Self.file, $0) })
    for (seed, (text, verdict)) in zip(texts, verdicts).enumerated() {
      switch RegistryChange.parse(Array(text.utf8)) {
      case .success: #expect(verdict.isEmpty, "seed \(seed): only the schema refuses: \(verdict)\n\(text)")
      case .failure(let refusal):
        let isGap = RegistrySchemas.gaps.contains { $0.isReason(refusal) }
        #expect(!verdict.isEmpty || isGap, "seed \(seed): only the reader refuses: \(refusal)\n\(text)")
      }
    }
    #expect((120...600).contains(verdicts.count { $0.isEmpty }), "\(verdicts.count { $0.isEmpty }) accepted")
  }

  @Test("every answer is valid")
  func answers() throws {
    let answers: [ChangeAnswer] =
      [
        .registration(RegistryID.make(.registration, high: 1, low: 2)), .done,
        .results([nil, .notFound, .invalidArgument, .tooManyTopics]),
        .notificationKey(RegistryID.make(.group, high: 1, low: 2), failed: []),
        .notificationKey(RegistryID.make(.group, high: 1, low: 2), failed: [0, 3]),
      ] + ChangeError.allCases.map { .refused($0, reason: "why") }
    let cases = answers.map { (schema: "registry-answer.schema.json", text: String(decoding: $0.json, as: UTF8.self)) }
    for (answer, verdict) in zip(answers, try SchemaJudge.shared.judge(cases)) {
      #expect(verdict.isEmpty, "\(answer): \(verdict)")
    }
    let wrong = [
      #"{"error":"x","reason":"y"}"#, #"{"error":"NotRegistered"}"#, #"{"registration":"x"}"#, #"{"results":[{"error":"X"}]}"#,
    ]
    #expect(try !SchemaJudge.shared.judge(wrong.map { ("registry-answer.schema.json", $0) }).contains(""))
  }
}
