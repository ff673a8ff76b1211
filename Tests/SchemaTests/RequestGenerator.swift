import TestSupport

@testable import PushCore

/// Generates requests from a seed. Most of their values follow the rules, some break them.
struct RequestGenerator {
  var random: SeededGenerator
  /// One in this many values is arbitrary.
  let mischief: Int

  init(seed: UInt64) {
    random = SeededGenerator(seed: seed)
    mischief = [10, 40, 400][Int(seed % 3)]
  }

  mutating func one(in chance: Int) -> Bool { Int.random(in: 0..<chance, using: &random) == 0 }
  mutating func pick<Element>(_ elements: [Element]) -> Element { elements[Int.random(in: 0..<elements.count, using: &random)] }
  mutating func pick(_ words: String...) -> JSONValue { .string(pick(words)) }

  mutating func request() -> JSONValue {
    if one(in: 2) { return gcm() }
    var members: [(name: String, value: JSONValue)] = [("message", message())]
    if one(in: 3) { members.append((pick(["validate_only", "validateOnly"]), value(.boolean))) }
    if one(in: mischief) { members.append((pick(["to", "validate_only", "Message", "priority"]), arbitrary())) }
    if one(in: mischief * 4) { members.removeFirst() }
    return unique(members)
  }

  // MARK: The two shapes

  private mutating func gcm() -> JSONValue {
    var members: [(name: String, value: JSONValue)] = []
    for (name, value) in targets(["to", "registration_ids", "condition", "notification_key"]) { members.append((name, value)) }
    let options: [RequestField] = [
      .priority, .collapseKey, .timeToLive, .delayWhileIdle, .contentAvailable, .mutableContent, .restrictedPackageName,
      .dryRun,
      .notification, .data, .apns, .webpush, one(in: 3) ? .androidV2 : .android,
    ]
    for field in options where one(in: 3) { members.append((field.wireName, sometimesArbitrary { $0.option(field) })) }
    return spoilt(members)
  }

  private mutating func option(_ field: RequestField) -> JSONValue {
    switch field {
    case .priority: pick("high", "normal")
    case .collapseKey: collapseKey()
    case .timeToLive:
      pick([.number("0"), .number("600"), .number("2419200"), .number("6e2"), .number("60.0"), "3600", "0000000005"])
    case .restrictedPackageName: pick("com.example.app", "a-b_C.9", "")
    case .notification: object(NotificationKey.table) { $0.rule }
    case .data: pick([data(), ["n": 5, "o": ["a": [1, .null]], "z": .null, "": true]])
    case .apns: apns()
    case .android: android()
    case .androidV2: androidV2()
    case .webpush: object(WebpushKey.table) { $0.rule }
    default: value(.looseBoolean)
    }
  }

  private mutating func message() -> JSONValue {
    var members: [(name: String, value: JSONValue)] = []
    for (name, value) in targets(["token", "fid", "topic", "condition"]) { members.append((name, value)) }
    let blocks: [MessageField] = [
      .name, .notification, .data, .apns, .webpush, .fcmOptions, one(in: 3) ? .androidV2 : .android,
    ]
    for field in blocks + (one(in: mischief) ? [.android] : []) where one(in: 3) {
      members.append(
        (
          spelling(field),
          sometimesArbitrary { generator in
            switch field {
            case .notification: generator.object(NotificationKey.plainTable) { _ in .string }
            case .data: generator.data()
            case .apns: generator.apns()
            case .android: generator.android()
            case .androidV2: generator.androidV2()
            case .webpush: generator.object(WebpushKey.table) { $0.rule }
            case .fcmOptions: generator.value(.labelOptions)
            default: generator.value(.string)
            }
          }
        ))
    }
    return spoilt(members)
  }

  private mutating func targets(_ names: [String]) -> [(String, JSONValue)] {
    let count = one(in: mischief) ? pick([0, 2]) : 1
    var chosen = Array(names.shuffled(using: &random).prefix(count))
    if one(in: 5) { chosen += [names[0]] }
    var targets: [(String, JSONValue)] = []
    for name in chosen where !targets.contains(where: { $0.0 == name }) {
      let value: JSONValue = sometimesArbitrary { generator in
        switch name {
        case "registration_ids": generator.pick([["x"], ["x", "a b", ""], [.string(Self.hex)]])
        case "condition": generator.pick("'a' in topics", "'a' in topics && !('b' in topics)", "'a' in topic")
        case "topic": generator.pick("news", "a~b%20")
        case "fid":
          generator.pick("cXyZ0123456789_-AbCdEf", "fAAAAAAAAAAAAAAAAAAAAA", "bXyZ0123456789_-AbCdEf", "cXyZ0123456789_-AbCdE")
        default: generator.pick(generator.one(in: 8) ? Self.badTargets : Self.goodTargets).json
        }
      }
      targets.append((name, targets.isEmpty || one(in: 6) ? value : .null))
    }
    return targets
  }

  private mutating func apns() -> JSONValue {
    object(APNsKey.table) { key, generator in
      switch key {
      case .headers:
        generator.object(APNsHeader.table) { header, generator in
          switch header {
          case .apnsPushType: .string(generator.pick(APNsHeader.pushTypes))
          case .apnsTopic: "com.example.app.voip"
          case .apnsId: "123e4567-e89b-12d3-a456-426614174000"
          case .apnsExpiration: generator.pick("0", "1795209720")
          case .apnsPriority: generator.pick("1", "5", "10")
          case .apnsCollapseId: generator.pick([.string("k"), .string(String(repeating: "雑", count: 22)), "a\nb"])
          }
        }
      case .payload:
        generator.pick([
          [:], ["aps": generator.object(APSKey.table) { $0.rule }],
          ["aps": generator.object(APSKey.table) { $0.rule }, "k": [1, .null]],
        ])
      case .fcmOptions: generator.value(.imageOptions)
      case .liveActivityToken: generator.pick("00ff", "00f")
      }
    }
  }

  private mutating func android() -> JSONValue {
    object(AndroidKey.table) { key, generator in
      switch key {
      case .notification: generator.object(AndroidNotificationKey.table) { $0.rule }
      case .collapseKey: generator.collapseKey()
      case .restrictedPackageName: generator.pick("com.example.app", "")
      default: generator.value(key.rule)
      }
    }
  }

  private mutating func androidV2() -> JSONValue {
    let kind: AndroidKey = one(in: 3) ? .backgroundSync : .remoteNotification
    let isSpoilt = one(in: mischief)
    return object(
      AndroidKey.tableV2, always: isSpoilt ? nil : kind, never: isSpoilt ? [] : [.backgroundSync, .remoteNotification]
    ) {
      key, generator in
      switch key {
      case .remoteNotification:
        generator.object(RemoteNotificationKey.table) { key, generator in
          key == .notification ? generator.object(AndroidNotificationKey.tableV2) { $0.ruleV2 } : generator.value(key.rule)
        }
      case .collapseKey: generator.collapseKey()
      case .restrictedPackageName: generator.pick("com.example.app", "")
      default: generator.value(key.rule)
      }
    }
  }

  private mutating func collapseKey() -> JSONValue {
    pick([
      .string("k"), "", "Updates Available", .string(String(repeating: "雑", count: 400)),
      .string(String(repeating: "k", count: 1024)),
    ])
  }

  private mutating func data() -> JSONValue {
    pick([["k": "v"], [:], ["a b": "雑", "": "x"], ["From": "v"], ["goog": "v", "gc": "w"]])
  }

  // MARK: Objects

  private mutating func object<Field: FieldName>(_ table: NameTable<Field>, _ rule: (Field) -> FieldRule?) -> JSONValue {
    object(table) { field, generator in rule(field).map { generator.value($0) } ?? generator.arbitrary() }
  }

  /// - Parameters:
  ///   - always: the object always has this field.
  ///   - never: the object has none of these fields, except `always`.
  private mutating func object<Field: FieldName>(
    _ table: NameTable<Field>, always: Field? = nil, never: [Field] = [], _ make: (Field, inout RequestGenerator) -> JSONValue
  ) -> JSONValue {
    var members: [(name: String, value: JSONValue)] = []
    let chance = table.fields.count > 8 ? 5 : 3
    for field in table.fields {
      let isAlways = field.rawValue == always?.rawValue
      guard isAlways || !never.contains(where: { $0.rawValue == field.rawValue }) && one(in: chance) else { continue }
      members.append((spelling(field), sometimesArbitrary { make(field, &$0) }))
      if one(in: mischief * 2) { members.append((field.wireName, sometimesArbitrary { make(field, &$0) })) }
      if one(in: mischief * 2) { members.append((String(describing: field), pick([.null, make(field, &self)]))) }
    }
    return spoilt(members)
  }

  private mutating func spelling<Field: FieldName>(_ field: Field) -> String {
    Field.acceptsCamelCase && one(in: 3) ? String(describing: field) : field.wireName
  }

  /// Sometimes adds an unknown name.
  private mutating func spoilt(_ members: [(name: String, value: JSONValue)]) -> JSONValue {
    unique(one(in: mischief * 2) ? members + [(pick(["unknown", "timeToLive", "aps", ""]), arbitrary())] : members)
  }

  /// Shuffles the members and removes duplicate names, which the JSON reader refuses.
  private mutating func unique(_ members: [(name: String, value: JSONValue)]) -> JSONValue {
    var names: Set<String> = []
    return .object(members.shuffled(using: &random).filter { names.insert($0.name).inserted })
  }

  // MARK: Values

  private mutating func sometimesArbitrary(_ make: (inout RequestGenerator) -> JSONValue) -> JSONValue {
    if one(in: mischief) { return arbitrary() }
    return one(in: 20) ? .null : make(&self)
  }

  mutating func arbitrary() -> JSONValue { pick(Self.pool) }

  /// A value that the rule allows.
  mutating func value(_ rule: FieldRule) -> JSONValue {
    switch rule {
    case .string: pick("t", "", "雑談\u{202E}\n")
    case .boolean: pick([true, false])
    case .looseBoolean: pick([true, false, "true", "false"])
    case .count: pick([.number("0"), .number("2147483647"), "2", "2147483647", .number("3e0")])
    case .int32: pick([0, .number("-2147483648"), .number("2147483647"), .number("7e0")])
    case .counter: pick([.number("0"), "2", "auto"])
    case .color: pick("#fb9200", "#ABCDEF")
    case .secureURL: pick("https://example.com/i.png", "HTTPS://雑")
    case .sound: pick(["default", [:], ["critical": true, "name": "n", "volume": .number("0.5")], ["critical": 1]])
    case .arguments: pick([[], ["a", 2, .number("1.50")], "[\"a\"]", " []", "[1,]"])
    case .strings: pick([[], ["a", ""]])
    case .oneOf(let words): .string(pick(words).description)
    case .duration: pick("3.5s", "0s", "999999999999.123456789s")
    case .durations: pick([[], ["1s", "0.5s"]])
    case .lifetime: pick("0s", "2419200s", "2419200.000s", "2419199.999s", "000002419200s", "000000000060s")
    case .timestamp: pick("2026-11-20T21:22:00Z", "2026-11-20T21:22:60.123456789+05:30", "2028-02-29T00:00:00Z")
    case .unit: pick([0, 1, .number("0.5"), .number("1e-3")])
    case .flag: pick([0, 1, true, false, .number("1.0")])
    case .label: pick("label-1", "a~%")
    case .stringMap: pick([[:], ["TTL": "5"]])
    case .data: data()
    case .object: pick([[:], ["a": [.null]]])
    case .emptyObject: [:]
    case .labelOptions: pick([[:], ["analytics_label": "l"], ["analyticsLabel": "a~%"]])
    case .seconds: pick([0, .number("1795209720"), .number("1795209720.0"), .number("1e3")])
    case .name: pick("A", "雑談")
    case .channel: pick("bm8gc3VjaA==", "c")
    case .number: pick([0, .number("-1.5"), .number("1795209720"), .number("1e300")])
    case .badge: pick([0, 7, .number("2147483647")])
    case .bit: pick([0, 1])
    case .alert: one(in: 3) ? "text" : object(APSAlertKey.table) { $0.rule }
    case .criticalSound: pick(["default", [:], ["critical": 1, "name": "n", "volume": 1, "next": 5]])
    case .localisedText: pick(["text", ["loc-key": "K", "loc-args": ["a"]], ["other": 1]])
    case .imageOptions: object(OptionsKey.imageTable) { $0 == .analyticsLabel ? .label : .string }
    case .linkOptions: object(OptionsKey.linkTable) { $0 == .analyticsLabel ? .label : .secureURL }
    case .lightSettings: object(LightSettingsKey.table) { $0 == .color ? .lightColor : .duration }
    case .lightColor: object(LightColorKey.table) { _ in .unit }
    }
  }

  static let hex = String(repeating: "0aF", count: 32)
  static let goodTargets = [
    "/topics/a", "/all", "/users/anna+x@example.com", "apns:00", "apns:" + hex, "fcm:a:b%20.", hex,
    "bk3RNwTe3H0:CI2k_HHwgIpoDKCIZvvDMExUdFQ3P1",
    "pf1r~00000000000000000000000000", "pf1g~7zzzzzzzzzzzzzzzzzzzzzzzzz", String(repeating: "a", count: 63),
    String(repeating: "a", count: 201), "fcm:" + String(repeating: "a", count: 65), "a.b%3", "apns-channel:bm8gc3VjaA==",
    "fid:dXyZ0123456789_-AbCdEf",
    "fcm:/topics/a", "fcm:'a' in topics && !('b' in topics)", "fcm:/topics/" + String(repeating: "t", count: 900), "fid",
    "fidx:y",
  ]
  static let badTargets = [
    "", " x", "x\n", "apns:0", "apns:", "apns:0g", "fcm:", "fcm:..", "a..b", "%2e", "%2Fx", "/topics/", "/topics/a b",
    "/users/", "/x", "/all/", "/alls", "a~b",
    "pf1r~80000000000000000000000000", "pf1r~0000000000000000000000000i", String(repeating: "a", count: 65),
    String(repeating: "a", count: 199), "é", hex + "\n", "apns:00\n", "/topics/a\n",
    "fcm:/topics/", "fcm:/topics/a b", "fcm:/topics/" + String(repeating: "t", count: 901), "fcm:(", "fcm:'a' in topic",
    "fcm:/users/a",
    "fcm:fid:dXyZ0123456789_-AbCdEf", "apns-channel:", "apns-channel:a.b", "fid:", "fid:bXyZ0123456789_-AbCdEf",
    "fid:dXyZ0123456789_-AbCdEfg",
    "fid:dXyZ0123456789_-AbCdE\n",
  ]

  /// Values that are valid for some fields and invalid for others.
  static let pool: [JSONValue] =
    [
      .null, true, false, 0, 1, -1, 2, 600, 2_419_200, 2_419_201, 2_147_483_647, 2_147_483_648, .number("0.5"), .number("1.5"),
      .number("-0"), .number("1e2"), .number("1e400"), .number("-1e400"), .number("99999999999999999999"), .number("1.0"), [],
      ["a"],
      ["a", 1], [.null], [true], [["a"]], [:], ["a": "b"], ["a": 1], ["a": .null], ["from": "x"], ["google.x": "y"],
      ["gcm.x": "y"],
      ["gcm.notification.x": "y"],
      ["message_type": "z"],
      ["name": "n", "critical": 1], ["volume": 2], ["critical": 2], ["name": 5], ["loc-key": 1], ["loc-args": "x"],
      ["aps": .null], ["aps": []],
    ]
    + [
      "x", "true", "false", "TRUE", "5", "05", "2419200", "2419201", "00000000000", "-1", "1.5", "3.5s", "0s", "2419200s",
      "2419201s",
      "2419200.5s", "1.s", ".5s", "-1s", "#aabbcc", "#aabbcg", "#aabbcc\n", "high", "HIGH", "normal", "PRIORITY_HIGH",
      "PRIVATE", "ALLOW",
      "2026-11-20T21:22:00Z", "2026-13-20T21:22:00Z", "2026-11-20 21:22:00Z", "2026-11-20T24:00:00Z", "2026-11-20T21:22:00",
      "[\"a\"]", "[1]",
      "[null]", "{}", "雑談", "a\u{202E}", "a\u{2028}b", "a\u{85}b", "\u{7F}", "label_1", "a b", "1", "10", "7", "alert",
      "update", "active",
      "123e4567-e89b-12d3-a456-426614174000", "123E4567-e89b-12d3-a456-426614174000", "'a' in topics", "00ff", "00f",
    ].map(JSONValue.string)
    + [
      .string(String(repeating: "a", count: 50)), .string(String(repeating: "a", count: 51)),
      .string(String(repeating: "a", count: 64)),
      .string(String(repeating: "a", count: 255)), .string(String(repeating: "a", count: 256)),
      .string(String(repeating: "a", count: 1025)),
      .string(String(repeating: "雑", count: 64)), .string(String(repeating: "a", count: 2100)),
    ] + (goodTargets + badTargets).map(JSONValue.string)
}

extension String {
  fileprivate var json: JSONValue { .string(self) }
}
