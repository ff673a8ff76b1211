import PushCore
import Wire

/// One entry of the feedback service's list: time, length and token (Apple, "Binary Provider API", feedback service).
enum FeedbackTuple {
  /// The bytes of an entry. Nil for events without one: Apple's list had only tokens of apps removed from a device.
  /// - Parameters:
  ///   - event: the body of a message of the exchange of events.
  ///   - listsBadTokens: also list tokens that APNs calls bad.
  static func bytes(_ event: [UInt8], listsBadTokens: Bool) -> [UInt8]? {
    guard let json = try? JSONDocument(event), json.kind(json.root) == .object,
      let word = json.string("event").flatMap({ FeedbackEvent.Event(rawValue: String(decoding: $0, as: UTF8.self)) }),
      word == .notRegistered || listsBadTokens && word == .invalidRegistration,
      json.string("platform") == Array("apns".utf8),
      let token = json.string("token").flatMap(Self.token),
      let time = (json.string("invalid_since") ?? json.string("observed_at")).flatMap(Timestamp.milliseconds)
    else { return nil }
    // This interface never had tokens of live activities and calls.
    if let kind = json.string("kind"), kind != Array(TokenKind.alert.name.utf8) { return nil }
    let seconds = UInt32(clamping: time / 1000)
    var bytes: [UInt8] = []
    bytes.reserveCapacity(6 + token.count)
    bytes.appendBigEndian(seconds)
    bytes.appendBigEndian(UInt16(truncatingIfNeeded: token.count))
    return bytes + token
  }

  /// The bytes of a hexadecimal text; nil if it is not hexadecimal, or longer than a token.
  private static func token(_ digits: [UInt8]) -> [UInt8]? {
    guard (2...200).contains(digits.count), digits.count % 2 == 0 else { return nil }
    var bytes: [UInt8] = []
    for index in stride(from: 0, to: digits.count, by: 2) {
      guard let high = digits[index].hexValue, let low = digits[index + 1].hexValue else { return nil }
      bytes.append(high << 4 | low)
    }
    return bytes
  }
}
