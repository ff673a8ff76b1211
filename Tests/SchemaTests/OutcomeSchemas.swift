@testable import PushCore

/// The schemas of what follows from a request. Open: members may be added, and a consumer passes over those that it doesn't know.
enum OutcomeSchemas {
  static let feedback = outcome(
    "Feedback event",
    "The body of a message on push.feedback: one dead, doubtful, replaced or silent token. Prune only a token registered before invalid_since.",
    [
      ("event", ["enum": .strings(FeedbackEvent.Event.allCases.map(\.rawValue))]), ("app", ["type": "string"]),
      ("platform", ["enum": .strings(Platform.allCases.map(String.init(describing:)))]),
      ("token", ["description": "the provider's; a Firebase installation as fid:<id>", "type": "string"]),
      ("registration", ["description": "the registry's id of the device", "type": ["string", "null"]]),
      ("reason", ["description": "the provider's word", "type": "string"]), ("status", ["type": "integer"]),
      (
        "invalid_since",
        ["description": "the provider's own time", "type": ["string", "null"], "pattern": .string(Pattern.writtenTime)]
      ),
      ("message_id", ["type": "string"]), ("observed_at", time),
    ],
    optional: [
      ("new_token", ["description": "of Moved: what has replaced the token", "type": "string"]),
      ("environment", ["description": "Apple's service that the token belongs to", "enum": ["production", "sandbox"]]),
      ("sender", ["type": "string"]), ("installation", ["type": "string"]), ("user", ["type": "string"]),
      ("apns_id", ["description": "the push that was answered so", "type": "string"]),
      (
        "kind",
        [
          "description": "what the token is for: its kind in the registry, or mdm",
          "type": "string",
        ]
      ),
    ])

  static let result = outcome(
    "Result",
    "The body of a message to reply_to and on push.results, for one target or a list: results in the order of the request's targets.",
    [
      ("message_id", ["type": "string"]), ("app", ["type": "string"]), ("success", count), ("failure", count),
      ("canonical_ids", count),
      ("results", ["type": "array", "items": ["oneOf": [accepted, failed]]]),
    ],
    optional: [
      (
        "report",
        [
          "description": "of a dry run: what translation changed, by platform", "type": "object",
          "propertyNames": ["enum": .strings(Platform.allCases.map(String.init(describing:)))],
          "additionalProperties": [
            "type": "array",
            "items": [
              "type": "object", "required": ["rule", "field", "action", "words"],
              "properties": [
                "rule": ["type": "string"], "field": ["type": "string"],
                "action": ["enum": .strings(LossReport.Action.allCases.map(\.rawValue))], "words": ["type": "string"],
              ],
            ],
          ],
        ]
      )
    ])

  private static let accepted: JSONValue = [
    "type": "object", "required": ["message_id"],
    "properties": [
      "message_id": ["description": "the apns-id, or FCM's name; of a dry run that asked nobody: dry_run", "type": "string"],
      "registration_id": ["description": "the newer id to use from now on", "type": "string"],
      "apns_unique_id": ["description": "what APNs' sandbox calls the push in its log", "type": "string"], "error": false,
    ],
  ]
  private static let failed: JSONValue = [
    "type": "object", "required": ["error"],
    "properties": [
      "error": error, "reason": ["description": "what the dead letter says of it, where there is one", "type": "string"],
    ],
  ]

  static let fanOutResult = outcome(
    "Fan-out result",
    "The body of a result for a topic, a condition, a user or a group, once it has been sent to the last device.",
    [("message_id", ["type": "string"]), ("success", count), ("failure", count)],
    optional: [
      (
        "unknown",
        [
          "description":
            "of a cancelled broadcast, where there are any: devices that may have been reached, as the worker that sent to them was lost before it said so",
          "type": "integer", "minimum": 1,
        ]
      ),
      (
        "failures",
        [
          "description":
            "how many devices failed of each code and platform; they may be fewer than failure where a worker was lost",
          "type": "array",
          "items": [
            "type": "object", "required": ["error", "count"],
            "properties": [
              "error": error,
              "platform": ["description": "absent where the devices are registered no more", "enum": ["apns", "fcm"]],
              "count": ["type": "integer", "minimum": 1],
            ],
          ],
        ]
      ),
      (
        "failed_registration_ids",
        [
          "description": "of a user or group with up to a thousand devices: those that were not reached", "type": "array",
          "items": ["type": "string"],
        ]
      ),
    ])

  static let deadLetterHeaders = outcome(
    "Dead letter headers",
    "The headers of a message on push.dead that a worker has put there, among those of the request. A message that the broker "
      + "dead-lettered has x-death in their place. The body is the request, addressed to the one device where only some failed.",
    [
      ("x-push-error", error),
      (
        "x-push-reason",
        [
          "description": "the provider's or the parser's own words", "type": "string",
          "maxLength": .number(String(DeadLetter.longestReason)),
        ]
      ),
      ("x-push-attempts", ["type": "integer", "minimum": 0]), ("x-push-failed-at", time),
    ],
    optional: [
      ("x-push-status", ["description": "the provider's HTTP status, where it has answered", "type": "integer"]),
      (
        "x-push-producer",
        [
          "description":
            "the broker's user that published the request, empty where the message names none; there while no worker has found that the user may",
          "type": "string",
        ]
      ),
      (
        "x-push-truncated-from",
        ["description": "the body's size in bytes, where it was too large to be kept whole", "type": "integer"]
      ),
    ])

  private static let error: JSONValue = ["enum": .strings(PushError.allCases.map(\.rawValue))]
  private static let count: JSONValue = ["type": "integer", "minimum": 0]
  private static let time: JSONValue = ["type": "string", "pattern": .string(Pattern.writtenTime)]

  static func outcome(
    _ title: String, _ description: String, _ required: [(String, JSONValue)], optional: [(String, JSONValue)] = []
  ) -> JSONValue {
    [
      "$schema": "https://json-schema.org/draft/2020-12/schema", "title": .string(title), "description": .string(description),
      "type": "object", "required": .strings(required.map(\.0)),
      "properties": .object((required + optional).map { ($0.0, $0.1) }),
    ]
  }
}
