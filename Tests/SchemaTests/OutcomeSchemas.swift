@testable import PushCore

/// The schemas of outcomes. Later versions may add members; consumers must ignore members that they don't know.
enum OutcomeSchemas {
  static let feedback = outcome(
    "Feedback event",
    "The body of a message on push.feedback: one dead, suspect, replaced or stale token. Prune only a token registered before invalid_since.",
    [
      ("event", ["enum": .strings(FeedbackEvent.Event.allCases.map(\.rawValue))]), ("app", ["type": "string"]),
      ("platform", ["enum": .strings(Platform.allCases.map(String.init(describing:)))]),
      (
        "token",
        [
          "description": "the provider's token; fid:<id> for a Firebase installation, the endpoint for web push",
          "type": "string",
        ]
      ),
      ("registration", ["description": "the registry's id of the device", "type": ["string", "null"]]),
      ("reason", ["description": "the provider's reason code", "type": "string"]), ("status", ["type": "integer"]),
      (
        "invalid_since",
        [
          "description": "the time since which the token is invalid, as the provider reported it", "type": ["string", "null"],
          "pattern": .string(Pattern.writtenTime),
        ]
      ),
      ("message_id", ["type": "string"]), ("observed_at", time),
    ],
    optional: [
      ("new_token", ["description": "for Moved: the token that replaced this one", "type": "string"]),
      ("environment", ["description": "the APNs service that the token belongs to", "enum": ["production", "sandbox"]]),
      ("sender", ["type": "string"]), ("installation", ["type": "string"]), ("user", ["type": "string"]),
      ("apns_id", ["description": "the id of the push that got this answer", "type": "string"]),
      (
        "kind",
        [
          "description": "the purpose of the token: its kind in the registry, mdm, or webpush",
          "type": "string",
        ]
      ),
    ])

  static let result = outcome(
    "Result",
    "The body of a message to reply_to and on push.results, for a request with one target or a list. results has the order of the request's targets.",
    [
      ("message_id", ["type": "string"]), ("app", ["type": "string"]), ("success", count), ("failure", count),
      ("canonical_ids", count),
      ("results", ["type": "array", "items": ["oneOf": [accepted, failed]]]),
    ],
    optional: [
      (
        "report",
        [
          "description": "for a dry run: the changes that translation made, by platform", "type": "object",
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
      "message_id": [
        "description": "the apns-id, or FCM's name; dry_run for a dry run that asked no provider", "type": "string",
      ],
      "registration_id": ["description": "the newer id of the device, to use from now on", "type": "string"],
      "apns_unique_id": ["description": "the id of the push in the log of APNs' sandbox", "type": "string"], "error": false,
    ],
  ]
  private static let failed: JSONValue = [
    "type": "object", "required": ["error"],
    "properties": [
      "error": error,
      "reason": [
        "description": "the reason in the dead letter, if there is one; or that an operator has discarded the push",
        "type": "string",
      ],
    ],
  ]

  static let fanOutResult = outcome(
    "Fan-out result",
    "The body of a result for a topic, a condition, a user or a group, published after the request was sent to the last device.",
    [("message_id", ["type": "string"]), ("success", count), ("failure", count)],
    optional: [
      (
        "unknown",
        [
          "description":
            "for a cancelled broadcast, if not 0: devices that were perhaps reached, because the worker that sent to them was lost before it reported",
          "type": "integer", "minimum": 1,
        ]
      ),
      (
        "failures",
        [
          "description":
            "the number of failed devices by code and platform; the sum may be less than failure if a worker was lost",
          "type": "array",
          "items": [
            "type": "object", "required": ["error", "count"],
            "properties": [
              "error": error,
              "platform": ["description": "absent if the devices are no longer registered", "enum": ["apns", "fcm"]],
              "count": ["type": "integer", "minimum": 1],
            ],
          ],
        ]
      ),
      (
        "failed_registration_ids",
        [
          "description": "for a user or group with at most a thousand devices: the devices that were not reached",
          "type": "array",
          "items": ["type": "string"],
        ]
      ),
    ])

  static let deadLetterHeaders = outcome(
    "Dead letter headers",
    "The headers that a worker adds to the request's own headers when it publishes the message to push.dead. A message that the broker "
      + "dead-lettered has x-death instead. The body is the request. If only some devices failed, the body names only one of them.",
    [
      ("x-push-error", error),
      (
        "x-push-reason",
        [
          "description": "the provider's or the parser's own text", "type": "string",
          "maxLength": .number(String(DeadLetter.longestReason)),
        ]
      ),
      ("x-push-attempts", ["type": "integer", "minimum": 0]), ("x-push-failed-at", time),
    ],
    optional: [
      ("x-push-status", ["description": "the provider's HTTP status, if the provider answered", "type": "integer"]),
      (
        "x-push-producer",
        [
          "description":
            "the broker's user that published the request, or empty if the message names none; absent after a worker has found that the user has the right",
          "type": "string",
        ]
      ),
      (
        "x-push-truncated-from",
        ["description": "the body's full size in bytes, if the body was too large to be kept whole", "type": "integer"]
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
