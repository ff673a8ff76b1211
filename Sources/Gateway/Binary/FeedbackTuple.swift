import PushCore

/// One entry of the feedback service's list: a time, a length and a token (Apple, "Binary Provider API", feedback service).
enum FeedbackTuple {
  /// Nil for an event that the list doesn't have: Apple's had only tokens of an app that is gone from a device.
  ///
  /// - Parameters:
  ///   - event: the body of a message on the exchange of events.
  ///   - listsBadTokens: tokens that APNs calls bad are on the list as well.
  static func bytes(_ event: [UInt8], listsBadTokens: Bool) -> [UInt8]? {
    guard let json = try? JSONDocument(event), json.kind(json.root) == .object,
      let word = text("event", json).flatMap({ FeedbackEvent.Event(rawValue: String(decoding: $0, as: UTF8.self)) }),
      word == .notRegistered || listsBadTokens && word == .invalidRegistration,
      text("platform", json) == Array("apns".utf8),
      let token = text("token", json).flatMap(Self.token),
      let time = (text("invalid_since", json) ?? text("observed_at", json)).flatMap(Timestamp.milliseconds)
    else { return nil }
    // The tokens of live activities and of calls are none that this interface ever had.
    if let kind = text("kind", json), kind != Array(TokenKind.alert.name.utf8) { return nil }
    let seconds = UInt32(clamping: time / 1000)
    var bytes: [UInt8] = []
    bytes.reserveCapacity(6 + token.count)
    for shift in [24, 16, 8, 0] as [UInt32] { bytes.append(UInt8(truncatingIfNeeded: seconds >> shift)) }
    bytes.append(UInt8(truncatingIfNeeded: token.count >> 8))
    bytes.append(UInt8(truncatingIfNeeded: token.count))
    return bytes + token
  }

  private static func text(_ name: String, _ json: JSONDocument) -> [UInt8]? {
    guard let node = json.value(name, of: json.root), json.kind(node) == .string else { return nil }
    return json.string(node)
  }

  /// The bytes that hexadecimal digits stand for; nil where they are none, or too many for a token.
  private static func token(_ digits: [UInt8]) -> [UInt8]? {
    guard (2...200).contains(digits.count), digits.count % 2 == 0 else { return nil }
    var bytes: [UInt8] = []
    for index in stride(from: 0, to: digits.count, by: 2) {
      guard let high = value(digits[index]), let low = value(digits[index + 1]) else { return nil }
      bytes.append(high << 4 | low)
    }
    return bytes
  }

  private static func value(_ digit: UInt8) -> UInt8? {
    switch digit {
    case 0x30...0x39: digit - 0x30
    case 0x41...0x46, 0x61...0x66: (digit | 0x20) - 0x61 + 10
    default: nil
    }
  }
}
