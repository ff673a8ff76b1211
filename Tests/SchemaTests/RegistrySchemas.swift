import PushCore

@testable import DeviceRegistry

/// The schemas of registry changes and their answers, made from the reader's tables of operations and fields.
enum RegistrySchemas {
  /// What the reader refuses and JSON Schema can't say, as for requests.
  static let gaps: [(words: String, isReason: @Sendable (ChangeRefusal) -> Bool)] = [
    ("the body's encoding, its nesting, and names that stand twice", { $0.code == .invalidJSON }),
    ("sizes in bytes of UTF-8", { $0.reason.contains(" bytes, at most ") }),
  ]

  private static let limits = RegistryLimits()

  static var change: JSONValue {
    [
      "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Registry change",
      "description": .string(
        "The body of a message on push.registry, or a line of `pushfleet devices import`. What stands here is what is read, but for what a "
          + "schema can't say: " + gaps.map(\.words).joined(separator: "; ")
          + ". Where one application is configured, `app` may be left out of a message to a worker."),
      "type": "object", "properties": ["op": ["enum": .strings(ChangeOperation.allCases.map(\.rawValue))]],
      "allOf": .array(
        ChangeOperation.allCases.map { operation in
          var condition: JSONValue = ["properties": ["op": ["const": .string(operation.rawValue)]]]
          if operation != .register { condition = condition.adding([("required", ["op"])]) }
          return ["if": condition, "then": ["$ref": .string("#/$defs/\(operation.rawValue)")]]
        }),
      "$defs": .object(ChangeOperation.allCases.map { ($0.rawValue, schema($0)) }),
    ]
  }

  private static func schema(_ operation: ChangeOperation) -> JSONValue {
    var properties: [(name: String, value: JSONValue)] = [("op", true)]
    for field in operation.fields { properties.append((field.rawValue, value(field, of: operation))) }
    let schema: JSONValue = [
      "required": .strings(required(operation).map(\.rawValue)), "additionalProperties": false,
      "properties": .object(properties),
    ]
    return schema.adding(rest(operation))
  }

  private static func required(_ operation: ChangeOperation) -> [ChangeField] {
    switch operation {
    case .register: [.app, .platform, .token]
    case .unregister, .unregisterUser: [.app]
    case .subscribe, .unsubscribe: [.app, .topic, .tokens]
    case .groupCreate: [.app, .notificationKeyName]
    case .groupAdd, .groupRemove: [.app, .notificationKey]
    case .groupJoin, .groupLeave: [.app, .group]
    }
  }

  /// What concerns several fields.
  private static func rest(_ operation: ChangeOperation) -> [(name: String, value: JSONValue)] {
    func one(of fields: [ChangeField]) -> [(name: String, value: JSONValue)] {
      [("oneOf", .array(fields.map { ["required": [.string($0.rawValue)]] }))]
    }
    switch operation {
    case .register:
      return [
        ("dependentRequired", ["name": ["user"]]),
        ("if", ["properties": ["platform": ["const": "apns"]]]),
        ("then", ["properties": ["token": ["pattern": .string("^(apns:)?\(Pattern.hexPairs)$")]]]),
        (
          "else",
          [
            "properties": [
              "token": ["pattern": .string("^(fid:\(Pattern.installationID)|(?!fid:|fcm:fid:|fcm:$)\(Pattern.fcmToken))$")],
              "environment": false, "kind": ["const": "alert"],
            ]
          ]
        ),
        (
          "allOf",
          [
            [
              "if": ["properties": ["kind": ["const": "live_activity"]], "required": ["kind"]],
              "then": ["required": ["activity"]], "else": ["properties": ["activity": false]],
            ]
          ]
        ),
      ]
    case .unregister, .unregisterUser, .groupJoin, .groupLeave: return one(of: [.token, .registration, .installation])
    case .groupCreate, .groupAdd, .groupRemove: return one(of: [.registrationIDs, .users])
    case .subscribe, .unsubscribe: return []
    }
  }

  static func value(_ field: ChangeField, of operation: ChangeOperation) -> JSONValue {
    switch field {
    case .platform: ["enum": .strings(Platform.allCases.map(String.init(describing:)))]
    case .environment: ["enum": .strings(DeviceEnvironment.allCases.compactMap(\.name))]
    case .kind:
      ["description": "what the token is for: alert where it isn't given", "enum": .strings(TokenKind.allCases.map(\.name))]
    case .topic: ["type": "string", "pattern": .string(topic)]
    case .topics:
      [
        "type": "array", "maxItems": .number(String(limits.topicsPerDevice)),
        "items": ["type": "string", "pattern": .string(topic)],
      ]
    case .registeredAt:
      [
        "description": "when the provider gave out the token, where it is known; else the time at which the change is applied",
        "type": "string", "pattern": .string(Pattern.timestamp),
      ]
    case .user: ["type": "string", "pattern": .string("^\(Pattern.userID)$")]
    case .users:
      [
        "type": "array", "minItems": operation == .groupCreate ? 0 : 1, "maxItems": .number(String(limits.batch)),
        "items": ["type": "string", "pattern": .string("^\(Pattern.userID)$")],
      ]
    case .tokens, .registrationIDs:
      [
        "description": "provider tokens or registrations; one that is neither costs only itself", "type": "array",
        "minItems": 1,
        "maxItems": .number(String(limits.batch)), "items": ["type": "string"],
      ]
    case .registration: ["type": "string", "pattern": .string("^\(Pattern.registration)$")]
    case .token where operation != .register:
      ["description": "a provider's token, or a registration", "type": "string", "pattern": .string("^(\(Pattern.device))$")]
    case .group:
      [
        "type": ["string", "integer"], "maxLength": 255, "pattern": .string(Pattern.noControl),
        "minimum": .number("-9223372036854775808"), "maximum": .number("9223372036854775807"),
      ]
    default: ["type": "string", "maxLength": .number(String(field.most)), "pattern": .string(Pattern.noControl)]
    }
  }

  private static let topic = "^(/topics/)?\(Pattern.topicName)$"

  static let answer: JSONValue = [
    "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Registry answer",
    "description":
      "What reply_to gets for a registry change: of register, of unregister, of subscribe and unsubscribe, of the group operations, or of a refused change.",
    "type": "object",
    "properties": [
      "registration": ["type": "string", "pattern": .string("^\(Pattern.registration)$")],
      "results": [
        "description": "in the order of the change's tokens", "type": "array",
        "items": ["type": "object", "properties": ["error": ["enum": ["NOT_FOUND", "INVALID_ARGUMENT", "TOO_MANY_TOPICS"]]]],
      ],
      "notification_key": ["type": "string", "pattern": .string("^\(Pattern.notificationKey)$")],
      "failed_indexes": [
        "description": "the entries of registration_ids that named no device", "type": "array",
        "items": ["type": "integer", "minimum": 0],
      ],
      "error": ["enum": .strings(ChangeError.allCases.map(\.rawValue))], "reason": ["type": "string"],
    ],
    "dependentRequired": ["error": ["reason"], "reason": ["error"], "failed_indexes": ["notification_key"]],
  ]
}
