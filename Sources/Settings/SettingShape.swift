import PushCore

/// What may stand in the configuration, by name and shape: what is refused as unknown, and which variables there are.
indirect enum SettingShape: Sendable {
  case text
  /// A text, or several: in a list, or separated by commas or spaces.
  case texts
  case number
  case flag
  /// A file's path or its text: see `Material`.
  case material
  case object(Fields)
  /// An object, or a list of them.
  case objects(Fields)
  /// An object whose keys are names of the operator's.
  case named(Fields)

  typealias Fields = [String: SettingShape]

  /// Whether the value may stand in a file of its own, whose path the key with `File`, or the variable with `_FILE`, names.
  var mayBeInFile: Bool {
    switch self {
    case .text, .texts, .material: true
    case .number, .flag, .object, .objects, .named: false
    }
  }

  /// The whole configuration.
  static let configuration: Fields = [
    "broker": .texts, "ca": .material, "brokerCA": .material, "registry": .text, "registryStaleAfter": .text, "results": .text,
    "receipts": .flag, "deadLetters": .texts,
    "replyTo": .texts,
    "prefix": .text,
    "prefetch": .number, "shards": .number, "drainTimeout": .number, "log": .text, "logFormat": .text, "metrics": .text,
    "trace": .object(["keep": .text, "megabytes": .number, "perSecond": .number]),
    "traces": .text, "tracesHeaders": .text, "tracesCA": .material,
    "limits": .object(["body": .number, "notification": .number, "data": .number, "topicData": .number]),
    "registryLimits": .object([
      "groupMembers": .number, "topicsPerDevice": .number, "devicesPerUser": .number, "batch": .number,
    ]),
    "retry": .object(["attempts": .number, "steps": .texts]),
    "fanOut": .object(["pageSize": .number, "prefetch": .number]),
    "breaker": .object(["percent": .number, "sample": .number]),
    "richPages": .object(["url": .text, "keep": .text, "bytes": .number, "megabytes": .number]),
    "gateway": .object([
      "metrics": .text,
      "http": .object([
        "listen": .text, "wait": .number, "retransmission": .number, "shared": .flag, "deviceUsers": .flag,
        "registerUnknown": .flag, "certificate": .material, "key": .material,
      ]),
      "apns": .object([
        "listen": .text, "feedback": .text, "badTokens": .flag, "certificate": .material, "key": .material,
        "clients": .material, "app": .text,
      ]),
    ]),
    "apps": .named(
      credentials.merging([
        "defaultPriority": .text, "unknownKeys": .text, "unknownOutcomes": .text, "upmc": .flag, "countBadges": .flag,
        "producers": .texts,
        "senders": .named(credentials),
      ]) { $1 }),
  ]

  private static let credentials: Fields = [
    "apns": .objects([
      "key": .material, "keyID": .text, "teamID": .text, "certificate": .material, "passphrase": .text, "topic": .text,
      "topics": .texts,
      "environment": .text, "endpoint": .text, "broadcastEndpoint": .text, "channelsEndpoint": .text, "ca": .material,
      "timeout": .number,
    ]),
    "fcm": .object([
      "serviceAccount": .material, "package": .text, "messagesPerMinute": .number, "endpoint": .text, "ca": .material,
    ]),
  ]
}

extension SettingShape {
  /// A key that is no setting.
  struct Unknown {
    var path: [String]
    /// The settings that may stand there.
    var known: [String]
    /// The one that was probably meant.
    var meant: String?

    var error: ConfigurationError {
      ConfigurationError(
        key: ConfigurationSource.name(path),
        problem: "is not a setting\(meant.map { ": did you mean \($0)?" } ?? ""); known here: \(known.joined(separator: ", "))")
    }
  }
}

extension SettingShape.Fields {
  /// Refuses the first key that is no setting, before anything else is found missing because of it.
  func refuseUnknown(in value: ConfigurationValue) throws(ConfigurationError) {
    if let first = unknown(in: value).first { throw first.error }
  }

  func unknown(in value: ConfigurationValue, at path: [String] = []) -> [SettingShape.Unknown] {
    guard case .object(let members) = value else { return [] }
    return members.sorted { $0.key < $1.key }.flatMap { key, member -> [SettingShape.Unknown] in
      let base = key.hasSuffix("File") ? String(key.dropLast(4)) : key
      guard let shape = self[key] ?? (self[base]?.mayBeInFile == true ? .text : nil) else {
        let known = keys.sorted()
        return [.init(path: path + [key], known: known, meant: Spelling.nearest(to: key, among: known))]
      }
      switch (shape, member) {
      case (.object(let fields), _), (.objects(let fields), .object): return fields.unknown(in: member, at: path + [key])
      case (.objects(let fields), .array(let elements)):
        return elements.enumerated().flatMap { fields.unknown(in: $1, at: path + [key, "[\($0)]"]) }
      case (.named(let fields), .object(let entries)):
        return entries.sorted { $0.key < $1.key }.flatMap { fields.unknown(in: $1, at: path + [key, $0]) }
      default: return []
      }
    }
  }
}
