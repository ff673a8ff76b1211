import PushCore

@testable import DeviceRegistry

/// The schemas of registry changes and their answers, made from the reader's tables of operations and fields.
enum RegistrySchemas {
  /// Reasons for which the reader refuses a change that JSON Schema accepts.
  static let gaps: [(words: String, isReason: @Sendable (ChangeRefusal) -> Bool)] = [
    ("the body's encoding, its nesting, and names that occur twice in an object", { $0.code == .invalidJSON }),
    ("sizes in bytes of UTF-8", { $0.reason.contains(" bytes, at most ") }),
    ("that a public key is a point of P-256", { $0.reason.contains("of P-256") }),
    ("the subscription after `webpush:`", { $0.reason.hasSuffix("of a subscription after webpush:") }),
  ]

  private static let limits = RegistryLimits()

  static var change: JSONValue {
    [
      "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Registry change",
      "description": .string(
        "The body of a message on push.registry, or a line of `pushfleet devices import`. The reader accepts the same changes, but it "
          + "also checks rules that a schema can't express: " + gaps.map(\.words).joined(separator: "; ")
          + ". If only one application is configured, a message to a worker may omit `app`."),
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
    case .register: [.app, .platform]
    case .unregister, .unregisterUser: [.app]
    case .subscribe, .unsubscribe: [.app, .topic, .tokens]
    case .groupCreate: [.app, .notificationKeyName]
    case .groupAdd, .groupRemove: [.app, .notificationKey]
    case .groupJoin, .groupLeave: [.app, .group]
    }
  }

  /// The rules about several fields.
  private static func rest(_ operation: ChangeOperation) -> [(name: String, value: JSONValue)] {
    func one(of fields: [ChangeField]) -> [(name: String, value: JSONValue)] {
      [("oneOf", .array(fields.map { ["required": [.string($0.rawValue)]] }))]
    }
    switch operation {
    case .register:
      return [
        ("dependentRequired", ["name": ["user"]]),
        ("if", ["properties": ["platform": ["const": "webpush"]]]),
        ("then", ["required": ["subscription"], "properties": ["token": false]]),
        ("else", ["required": ["token"], "properties": ["subscription": false, "application_server_key": false]]),
        (
          "allOf",
          [
            [
              "if": ["properties": ["platform": ["const": "apns"]]],
              "then": ["properties": ["token": ["pattern": .string("^(apns:)?\(Pattern.hexPairs)$")]]],
              "else": ["properties": ["environment": false, "kind": ["const": "alert"]]],
            ],
            [
              "if": ["properties": ["platform": ["const": "fcm"]]],
              "then": ["properties": ["token": ["pattern": .string(fcmToken)]]],
            ],
            [
              "if": ["properties": ["kind": ["const": "live_activity"]], "required": ["kind"]],
              "then": ["required": ["activity"]], "else": ["properties": ["activity": false]],
            ],
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
      ["description": "the purpose of the token; default: alert", "enum": .strings(TokenKind.allCases.map(\.name))]
    case .topic: ["type": "string", "pattern": .string(topic)]
    case .topics:
      [
        "type": "array", "maxItems": .number(String(limits.topicsPerDevice)),
        "items": ["type": "string", "pattern": .string(topic)],
      ]
    case .registeredAt:
      [
        "description": "the time when the provider issued the token, if known; default: the time when the change is applied",
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
        "description": "provider tokens, endpoints or registrations; an invalid entry fails alone", "type": "array",
        "minItems": 1,
        "maxItems": .number(String(limits.batch)), "items": ["type": "string"],
      ]
    case .registration: ["type": "string", "pattern": .string("^\(Pattern.registration)$")]
    case .token where operation != .register:
      [
        "description": "a provider's token, a subscription's endpoint, or a registration", "type": "string",
        "pattern": .string("^(\(Pattern.device)|\(Pattern.endpointReference))$"),
      ]
    case .subscription: subscription
    case .applicationServerKey:
      [
        "description":
          "the public VAPID key that the browser made the subscription with, or its id as an export has it; default: the application's first",
        "type": "string", "pattern": .string("^([0-9a-fA-F]{16}|\(Pattern.publicKey))$"),
      ]
    case .group:
      [
        "type": ["string", "integer"], "maxLength": 255, "pattern": .string(Pattern.noControl),
        "minimum": .number("-9223372036854775808"), "maximum": .number("9223372036854775807"),
      ]
    default: ["type": "string", "maxLength": .number(String(field.most)), "pattern": .string(Pattern.noControl)]
    }
  }

  private static let fcmToken = "^(fid:\(Pattern.installationID)|(?!fid:|fcm:fid:|fcm:$)\(Pattern.fcmToken))$"

  private static let subscription: JSONValue = [
    "description": "the browser's PushSubscription object; other members are ignored", "type": "object",
    "required": ["endpoint", "keys"],
    "properties": [
      "endpoint": [
        "type": "string", "maxLength": .number(String(WebPushSubscription.longestEndpoint)),
        "pattern": .string(Pattern.endpoint),
      ],
      "keys": [
        "type": "object", "required": ["p256dh", "auth"],
        "properties": [
          "p256dh": ["type": "string", "pattern": .string("^\(Pattern.publicKey)$")],
          "auth": ["type": "string", "pattern": .string("^\(Pattern.authSecret)$")],
        ],
      ],
    ],
  ]

  private static let topic = "^(/topics/)?\(Pattern.topicName)$"

  static let answer: JSONValue = [
    "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Registry answer",
    "description": .string(
      "The answer to a registry change, sent to reply_to. It has registration after register, results after subscribe and unsubscribe, "
        + "notification_key after group_create, group_add and group_remove, error and reason after a refusal, and no members otherwise."
    ),
    "type": "object",
    "properties": [
      "registration": ["type": "string", "pattern": .string("^\(Pattern.registration)$")],
      "results": [
        "description": "in the order of the change's tokens", "type": "array",
        "items": ["type": "object", "properties": ["error": ["enum": ["NOT_FOUND", "INVALID_ARGUMENT", "TOO_MANY_TOPICS"]]]],
      ],
      "notification_key": ["type": "string", "pattern": .string("^\(Pattern.notificationKey)$")],
      "failed_indexes": [
        "description": "the indexes of the entries of registration_ids that named no device", "type": "array",
        "items": ["type": "integer", "minimum": 0],
      ],
      "error": ["enum": .strings(ChangeError.allCases.map(\.rawValue))], "reason": ["type": "string"],
    ],
    "dependentRequired": ["error": ["reason"], "reason": ["error"], "failed_indexes": ["notification_key"]],
  ]
}
