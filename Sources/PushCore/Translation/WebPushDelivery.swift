import Wire

/// A header field that `webpush.headers` may set (RFC 8030 §5.2 to §5.4). Its name has any letter case, as in HTTP.
enum WebPushHeader: String, CaseIterable {
  case ttl = "TTL"
  case urgency = "Urgency"
  case topic = "Topic"

  /// The node of the value, a string; nil if the request doesn't set the field.
  func node(in request: SendRequest) -> Int? {
    guard let headers = request.webpush(.headers) else { return nil }
    for (name, value) in request.document.members(of: headers) where isNamed(request.document.string(name)) { return value }
    return nil
  }

  private func isNamed(_ name: [UInt8]) -> Bool { TextForm.isAnyCase(name, of: rawValue.lowercased().utf8) }

  /// The text from which the topic is made; nil if requests don't replace each other.
  static func topicKey(_ request: SendRequest) -> [UInt8]? {
    let key = (topic.node(in: request) ?? request.collapseKeyNode).map(request.document.string)
    return key?.isEmpty == true ? nil : key
  }

  /// FCM takes any header, so these are checked only for web push.
  static func check(_ request: SendRequest) throws(Rejection) {
    guard let headers = request.webpush(.headers) else { return }
    let document = request.document
    for (name, value) in document.members(of: headers) {
      func refusal(_ code: PushError, _ rule: String) -> Rejection {
        Rejection(code, "\(document.path(to: value)): \(rule) at byte \(document.offset(name))")
      }
      guard let header = allCases.first(where: { $0.isNamed(document.string(name)) }) else {
        throw refusal(.invalidParameters, "a web push has no other headers than TTL, Urgency and Topic,")
      }
      guard header.node(in: request) == value else { throw refusal(.invalidParameters, "given twice, in two spellings") }
      if let rule = header.brokenRule(document.string(value)) {
        throw refusal(header == .ttl ? .invalidTTL : .invalidParameters, rule)
      }
    }
  }

  /// The violated rule, for people; nil if push services accept the value.
  private func brokenRule(_ value: [UInt8]) -> String? {
    switch self {
    case .ttl:
      Self.seconds(value) == nil ? "expected whole seconds from 0 to \(RequestLimits.longestTimeToLive)" : nil
    case .urgency:
      WebPushDelivery.Urgency(word: value) == nil ? "expected one of very-low, low, normal, high" : nil
    case .topic:
      value.isEmpty ? "must not be empty" : nil
    }
  }

  /// Nil if the text isn't a number of seconds, or is more than four weeks.
  static func seconds(_ text: [UInt8]) -> Int? {
    guard (1...10).contains(text.count), text.allSatisfy(Bytes.isDigit) else { return nil }
    let seconds = text.reduce(0) { $0 * 10 + Int($1 & 15) }
    return seconds <= RequestLimits.longestTimeToLive ? seconds : nil
  }
}

/// The instructions to a push service for keeping a push and waking its device.
struct WebPushDelivery {
  let urgency: Urgency
  let topic: [UInt8]?
  /// Unix milliseconds; nil: only for a browser that is connected now.
  let deadline: Int64?

  enum Urgency: String, CaseIterable {
    case veryLow = "very-low"
    case low, normal, high

    /// - Parameter word: in any letter case.
    init?(word: [UInt8]) {
      guard let urgency = Self.allCases.first(where: { TextForm.isAnyCase(word, of: $0.rawValue.utf8) }) else { return nil }
      self = urgency
    }
  }

  init(
    _ request: SendRequest, standard: Priority, _ context: borrowing TranslationContext
  ) throws(Rejection) {
    try WebPushHeader.check(request)
    urgency = Self.urgency(request, standard)
    topic = WebPushHeader.topicKey(request).map(Self.topic)
    deadline = Self.deadline(request, context)
  }

  /// In FCM v1's shape, which has no priority for browsers, the default is the protocol's.
  private static func urgency(_ request: SendRequest, _ standard: Priority) -> Urgency {
    if let node = WebPushHeader.urgency.node(in: request) { return Urgency(word: request.document.string(node)) ?? .normal }
    if request.shape == .fcmV1 { return .normal }
    if request.priority == .high { return .high }
    if request.delayWhileIdle { return .low }
    return (request.priority ?? standard) == .high ? .high : .normal
  }

  /// Always a hash, 32 characters: push services limit the length and the characters of a topic, and Apple also decodes it, so it
  /// refuses some lengths of shorter ones.
  static func topic(of key: [UInt8]) -> [UInt8] { Base64URL.encode(Digest.sha256(key).prefix(24)) }

  /// GS-062. The header counts from publishing and wins over `time_to_live`.
  private static func deadline(_ request: SendRequest, _ context: borrowing TranslationContext) -> Int64? {
    let own = WebPushHeader.ttl.node(in: request).flatMap { WebPushHeader.seconds(request.document.string($0)) }
    let common = request.timeToLive ?? request.androidTimeToLive
    if (own ?? common) == 0 { return nil }
    guard let own else { return context.deadline }
    return context.deadline(own, insteadOf: common ?? RequestLimits.longestTimeToLive)
  }
}
