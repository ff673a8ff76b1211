@testable import PushCore

/// The schema of a send request, made from the parser's own tables of names and rules.
enum RequestSchema {
  /// Reasons for which the parser refuses a request that JSON Schema accepts. The schema lists them; the property test allows no others.
  static let gaps: [(words: String, isReason: @Sendable (Rejection) -> Bool)] = [
    ("the body's encoding, its nesting, and names that occur twice in an object (InvalidJSON)", { $0.code == .invalidJSON }),
    ("the sizes of the body, notification and data in bytes of UTF-8 (MessageTooBig)", { $0.code == .messageTooBig }),
    (
      "the sizes of collapse_key and apns-collapse-id in bytes of UTF-8",
      { rejection in
        ["collapse_key: ", "collapseKey: "].contains { rejection.reason.contains($0) }
          && rejection.reason.contains(" bytes, at most ")
          || rejection.reason.contains("apns-collapse-id: expected 1 to 64 bytes")
      }
    ),
    ("the grammar of a condition and its number of topics", { $0.reason.contains(" of the condition) ") }),
    ("the JSON array inside a string that *_loc_args may have", { $0.reason.contains("array inside the string") }),
    (
      "the rules of push types: a background push shows and plays nothing, and only a live activity may have a relevance-score outside 0 to 1",
      { rejection in
        rejection.reason.contains(": a background push allows only ")
          || rejection.reason.contains("apns-push-type: background,")
          || rejection.reason.contains("relevance-score: expected a number from 0 to 1")
      }
    ),
  ]

  static let limits = RequestLimits()

  static var schema: JSONValue {
    [
      "$schema": "https://json-schema.org/draft/2020-12/schema",
      "title": "Send request",
      "description": .string(
        "The body of a message on push.send.high and push.send.normal, in the shape of GCM and FCM legacy HTTP or of FCM HTTP v1 "
          + "(docs/send/request.md). null means absent. The parser accepts the same messages, but it also checks rules that a schema can't express: "
          + gaps.map(\.words).joined(separator: "; ")
          + ". `pushfleet explain` shows if a platform accepts the payload."),
      "if": ["anyOf": .array(["message", "validate_only", "validateOnly"].map { ["required": [.string($0)]] })],
      "then": ["$ref": "#/$defs/v1"], "else": ["$ref": "#/$defs/gcm"],
      "$defs": .object([
        ("gcm", gcm), ("v1", v1), ("message", message), ("notification", object(NotificationKey.table) { $0.rule }),
        ("plainNotification", object(NotificationKey.plainTable) { _ in .string }), ("apns", apns),
        ("aps", known(APSKey.self) { $0.rule }), ("alert", known(APSAlertKey.self) { $0.rule }), ("android", android),
        ("androidNotification", object(AndroidNotificationKey.table) { $0.rule }), ("androidV2", androidV2),
        ("remoteNotification", remoteNotification),
        ("androidNotificationV2", object(AndroidNotificationKey.tableV2) { $0.ruleV2 }),
        ("webpush", object(WebpushKey.table) { $0.rule }),
        ("labelOptions", object(OptionsKey.labelTable) { _ in .label }),
        ("imageOptions", object(OptionsKey.imageTable) { $0 == .analyticsLabel ? .label : .string }),
        ("linkOptions", object(OptionsKey.linkTable) { $0 == .analyticsLabel ? .label : .secureURL }),
        ("lightSettings", object(LightSettingsKey.table) { $0 == .color ? .lightColor : .duration }),
        ("lightColor", object(LightColorKey.table) { _ in .unit }),
        ("present", ["not": ["type": "null"]]),
      ]),
    ]
  }

  // MARK: Shapes

  private static let target: JSONValue = ["type": ["string", "null"], "pattern": .string(Pattern.to)]
  private static let condition: JSONValue = [
    "description":
      "for example 'a' in topics && ('b' in topics || !('c' in topics)); at most \(limits.conditionTopics) topics; evaluated from left to right",
    "type": ["string", "null"], "minLength": 1,
  ]

  private static var gcm: JSONValue {
    object(
      RequestField.table,
      replacing: [
        .to: target.adding([
          (
            "description",
            "a token, /topics/<name>, /users/<id>, /all, apns:<hex>, fcm:<token>, fid:<id>, fcm:/topics/<name>, or an id that the registry issued"
          )
        ]),
        .notificationKey: [
          "description": "the old name of `to` for device groups", "type": ["string", "null"], "pattern": .string(Pattern.to),
        ],
        .registrationIds: [
          "description": "an invalid entry fails alone", "type": ["array", "null"], "minItems": 1,
          "maxItems": .number(String(limits.registrationIDs)), "items": ["type": "string"],
        ],
        .condition: condition, .priority: ["enum": ["high", "normal", .null]],
        .collapseKey: collapseKey,
        .timeToLive: [
          "description": "seconds, at most four weeks; a string of digits is accepted too",
          "type": ["integer", "string", "null"], "minimum": 0, "maximum": .number(String(RequestLimits.longestTimeToLive)),
          "pattern": .string(Pattern.atMost(RequestLimits.longestTimeToLive, digits: 10)),
        ],
        .delayWhileIdle: value(.looseBoolean), .contentAvailable: value(.looseBoolean), .mutableContent: value(.looseBoolean),
        .dryRun: value(.looseBoolean), .restrictedPackageName: packageName,
        .notification: ["$ref": "#/$defs/notification"],
        .data: [
          "description": "values of any type; a value that isn't a string is converted to one", "type": ["object", "null"],
          "propertyNames": ["pattern": .string(Pattern.freeDataKey)],
        ],
        .apns: ["$ref": "#/$defs/apns"], .android: ["$ref": "#/$defs/android"], .androidV2: ["$ref": "#/$defs/androidV2"],
        .webpush: ["$ref": "#/$defs/webpush"],
      ], isNullable: false
    ).adding([
      ("oneOf", exactlyOne(["to", "notification_key", "registration_ids", "condition"])),
      ("not", both(["android", "android_v2"])), ("if", hasActivity),
      (
        "then",
        [
          "properties": [
            "to": oneDevice, "notification_key": oneDevice, "condition": ["type": "null"],
            "registration_ids": ["maxItems": 1, "items": ["not": ["pattern": .string("^(\(Pattern.severalDevices))$")]]],
          ]
        ]
      ),
    ])
  }

  private static var v1: JSONValue {
    object(
      EnvelopeField.table, replacing: [.message: ["$ref": "#/$defs/message"], .validateOnly: value(.boolean)], isNullable: false
    )
    .adding([("required", ["message"])])
  }

  private static var message: JSONValue {
    object(
      MessageField.table,
      replacing: [
        .token: ["type": ["string", "null"], "pattern": .string(Pattern.token)],
        .fid: [
          "description": "a Firebase installation id", "type": ["string", "null"],
          "pattern": .string("^\(Pattern.installationID)$"),
        ],
        .topic: ["type": ["string", "null"], "pattern": .string("^\(Pattern.topicName)$")], .condition: condition,
        .name: value(.string), .notification: ["$ref": "#/$defs/plainNotification"], .data: value(.data),
        .apns: ["$ref": "#/$defs/apns"], .android: ["$ref": "#/$defs/android"], .androidV2: ["$ref": "#/$defs/androidV2"],
        .webpush: ["$ref": "#/$defs/webpush"], .fcmOptions: value(.labelOptions),
      ], isNullable: false
    ).adding([
      ("oneOf", exactlyOne(["token", "fid", "topic", "condition"])),
      ("not", ["anyOf": [both(["android", "android_v2"]), both(["android", "androidV2"])]]),
      ("if", hasActivity),
      ("then", ["properties": ["token": oneDevice, "topic": ["type": "null"], "condition": ["type": "null"]]]),
    ])
  }

  /// Any value except null, because null counts as absent.
  private static let present: JSONValue = ["$ref": "#/$defs/present"]

  private static func exactlyOne(_ names: [String]) -> JSONValue {
    .array(names.map { ["required": [.string($0)], "properties": .object([($0, present)])] })
  }

  private static func both(_ names: [String]) -> JSONValue {
    ["required": .strings(names), "properties": .object(names.map { ($0, present) })]
  }

  private static let activityTokens: JSONValue = [
    "anyOf": .array([both(["live_activity_token"]), both(["liveActivityToken"])])
  ]
  /// A live activity's token belongs to one device, so the target must be one device too.
  private static let hasActivity: JSONValue = [
    "required": ["apns"], "properties": ["apns": activityTokens.adding([("type", "object")])],
  ]
  private static let oneDevice: JSONValue = ["pattern": .string("^(\(Pattern.device))$")]

  private static var apns: JSONValue {
    object(
      APNsKey.table,
      replacing: [
        .headers: [
          "type": ["object", "null"], "additionalProperties": false,
          "properties": .object(APNsHeader.allCases.map { ($0.wireName, header($0)) }),
        ],
        .payload: ["type": ["object", "null"], "properties": ["aps": ["$ref": "#/$defs/aps"]]],
        .fcmOptions: value(.imageOptions),
        .liveActivityToken: ["type": ["string", "null"], "pattern": .string("^\(Pattern.hexPairs)$")],
      ]
    ).adding([
      ("if", activityTokens),
      ("then", ["properties": ["headers": ["properties": ["apns-push-type": ["const": "liveactivity"]]]]]),
    ])
  }

  private static func header(_ header: APNsHeader) -> JSONValue {
    switch header {
    case .apnsPushType: ["enum": .strings(APNsHeader.pushTypes)]
    case .apnsTopic: ["type": "string", "pattern": .string(Pattern.bundleID)]
    case .apnsId: ["type": "string", "pattern": .string(Pattern.uuid)]
    case .apnsExpiration: ["type": "string", "pattern": .string(Pattern.seconds)]
    case .apnsPriority: ["enum": ["1", "5", "10"]]
    case .apnsCollapseId: ["type": "string", "minLength": 1, "maxLength": 64, "pattern": .string(Pattern.plainLine)]
    }
  }

  private static var android: JSONValue {
    var replaced: [AndroidKey: JSONValue] = [
      .collapseKey: collapseKey, .restrictedPackageName: packageName, .notification: ["$ref": "#/$defs/androidNotification"],
    ]
    for key in AndroidKey.table.fields where replaced[key] == nil { replaced[key] = value(key.rule) }
    return object(AndroidKey.table, replacing: replaced)
  }

  private static var androidV2: JSONValue {
    var replaced: [AndroidKey: JSONValue] = [
      .collapseKey: collapseKey, .restrictedPackageName: packageName,
      .remoteNotification: ["$ref": "#/$defs/remoteNotification"],
    ]
    for key in AndroidKey.tableV2.fields where replaced[key] == nil { replaced[key] = value(key.rule) }
    let kinds = [AndroidKey.remoteNotification, .backgroundSync].flatMap { [$0.wireName, String(describing: $0)] }
    return object(AndroidKey.tableV2, replacing: replaced)
      .adding([("if", ["type": "object"]), ("then", ["oneOf": exactlyOne(kinds)])])
  }

  private static var remoteNotification: JSONValue {
    var replaced: [RemoteNotificationKey: JSONValue] = [.notification: ["$ref": "#/$defs/androidNotificationV2"]]
    for key in RemoteNotificationKey.allCases where replaced[key] == nil { replaced[key] = value(key.rule) }
    return object(RemoteNotificationKey.table, replacing: replaced)
  }

  private static let collapseKey: JSONValue = [
    "type": ["string", "null"], "maxLength": .number(String(limits.collapseKeyBytes)), "pattern": .string(Pattern.plainLine),
  ]
  private static let packageName: JSONValue = ["type": ["string", "null"], "pattern": .string(Pattern.packageName)]

  // MARK: Objects

  static func object<Field: FieldName>(_ table: NameTable<Field>, _ rule: (Field) -> FieldRule) -> JSONValue {
    object(
      table, replacing: Dictionary(uniqueKeysWithValues: table.fields.map { ($0.rawValue, value(rule($0))) }), isNullable: true)
  }

  static func object<Field: FieldName & Hashable>(
    _ table: NameTable<Field>, replacing values: [Field: JSONValue], isNullable: Bool = true
  ) -> JSONValue {
    object(table, replacing: Dictionary(uniqueKeysWithValues: values.map { ($0.rawValue, $1) }), isNullable: isNullable)
  }

  /// An object with no other fields. If two spellings of a field are accepted, an object may have only one of them.
  private static func object<Field: FieldName>(
    _ table: NameTable<Field>, replacing values: [UInt8: JSONValue], isNullable: Bool
  ) -> JSONValue {
    var properties: [(name: String, value: JSONValue)] = []
    var doubled: [JSONValue] = []
    for field in table.fields {
      let schema = values[field.rawValue] ?? .bool(false)
      let camelCase = String(describing: field)
      properties.append((field.wireName, schema))
      guard Field.acceptsCamelCase, camelCase != field.wireName else { continue }
      properties.append((camelCase, schema))
      let names = [field.wireName, camelCase]
      doubled.append([
        "not": ["type": "object", "required": .strings(names), "properties": .object(names.map { ($0, present) })]
      ])
    }
    let schema: JSONValue = [
      "type": isNullable ? ["object", "null"] : "object", "additionalProperties": false, "properties": .object(properties),
    ]
    return doubled.isEmpty ? schema : schema.adding([("allOf", .array(doubled))])
  }

  /// An object that may also have other fields.
  private static func known<Field: FieldName>(_ type: Field.Type, _ rule: (Field) -> FieldRule?) -> JSONValue {
    [
      "type": "object",
      "properties": .object(Field.allCases.compactMap { field in rule(field).map { (field.wireName, value($0)) } }),
    ]
  }

  // MARK: Values

  /// A value of a field, or null.
  static func value(_ rule: FieldRule) -> JSONValue {
    switch rule {
    case .string: ["type": ["string", "null"]]
    case .boolean: ["type": ["boolean", "null"]]
    case .looseBoolean: ["enum": [true, false, "true", "false", .null]]
    case .count:
      [
        "type": ["integer", "string", "null"], "minimum": 0, "maximum": 2_147_483_647,
        "pattern": .string(Pattern.atMost(2_147_483_647, digits: 10)),
      ]
    case .int32: ["type": ["integer", "null"], "minimum": .number("-2147483648"), "maximum": 2_147_483_647]
    case .counter:
      [
        "anyOf": [value(.count), ["const": "auto"]]
      ]
    case .color: text(Pattern.color)
    case .secureURL: text(Pattern.secureURL)
    case .sound:
      [
        "type": ["string", "object", "null"], "additionalProperties": false,
        "properties": ["critical": value(.flag), "name": value(.string), "volume": value(.unit)],
      ]
    case .arguments:
      ["type": ["array", "string", "null"], "items": ["type": ["string", "number"]], "pattern": "^[ \\t\\r\\n]*\\["]
    case .strings: ["type": ["array", "null"], "items": ["type": "string"]]
    case .oneOf(let words): ["enum": .array(words.map { .string($0.description) } + [.null])]
    case .duration: text(Pattern.duration)
    case .durations: ["type": ["array", "null"], "items": ["type": "string", "pattern": .string(Pattern.duration)]]
    case .lifetime: text(Pattern.lifetime)
    case .timestamp: text(Pattern.timestamp)
    case .unit: ["type": ["number", "null"], "minimum": 0, "maximum": 1]
    case .flag: ["type": ["boolean", "integer", "null"], "minimum": 0, "maximum": 1]
    case .label: text(Pattern.label)
    case .stringMap: ["type": ["object", "null"], "additionalProperties": ["type": "string"]]
    case .data:
      [
        "type": ["object", "null"], "additionalProperties": ["type": "string"],
        "propertyNames": ["pattern": .string(Pattern.freeV1DataKey)],
      ]
    case .object: ["type": ["object", "null"]]
    case .emptyObject: ["type": ["object", "null"], "maxProperties": 0]
    case .seconds:
      ["type": ["integer", "null"], "minimum": 0, "maximum": .number("9223372036854775807")]
    case .name: ["type": ["string", "null"], "minLength": 1]
    case .channel: text("^\(Pattern.channelID)$")
    case .number:
      [
        "type": ["number", "null"], "minimum": .number("-1.7976931348623157e308"),
        "maximum": .number("1.7976931348623157e308"),
      ]
    case .badge: ["type": ["integer", "null"], "minimum": 0, "maximum": 2_147_483_647]
    case .bit: ["type": ["integer", "null"], "minimum": 0, "maximum": 1]
    case .alert: ["anyOf": [["type": ["string", "null"]], ["$ref": "#/$defs/alert"]]]
    case .criticalSound:
      [
        "type": ["string", "object", "null"],
        "properties": ["critical": value(.bit), "name": value(.string), "volume": value(.unit)],
      ]
    case .localisedText:
      ["type": ["string", "object", "null"], "properties": ["loc-key": value(.string), "loc-args": value(.strings)]]
    case .labelOptions: ["$ref": "#/$defs/labelOptions"]
    case .imageOptions: ["$ref": "#/$defs/imageOptions"]
    case .linkOptions: ["$ref": "#/$defs/linkOptions"]
    case .lightSettings: ["$ref": "#/$defs/lightSettings"]
    case .lightColor: ["$ref": "#/$defs/lightColor"]
    }
  }

  private static func text(_ pattern: String) -> JSONValue { ["type": ["string", "null"], "pattern": .string(pattern)] }
}
