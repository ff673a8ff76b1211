import AMQP
import PushCore
import Wire

/// The send request made from a notification.
struct BinaryRequest {
  /// Routing key on the exchange of requests, and the request's own priority.
  let priority: Priority
  let body: [UInt8]
  let properties: BasicProperties

  /// - Parameters:
  ///   - app: the application of the sender's certificate or of the listener.
  ///   - now: Unix seconds.
  ///   - id: the request's message id.
  /// - Throws: the refusal of a request that would become a dead letter, so that the sender learns of it at once.
  init(_ frame: BinaryFrame, app: [UInt8], now: Int64, id: [UInt8], limits: RequestLimits) throws(BinaryRefusal) {
    let refusal = BinaryRefusal(status: .processingError, identifier: frame.identifier, isSilent: frame.isSimple)
    // The payload is copied into the request unchanged, so it must be exactly one JSON value.
    guard let payload = try? JSONDocument(frame.payload), payload.kind(payload.root) == .object else { throw refusal }
    let end = frame.expiry.map(Int64.init)
    // A notification that expired before it arrived ends as expired. This protocol has no error for that.
    let since = end.map { $0 == 0 ? now : min($0 - 1, now) } ?? now
    // Without an expiry, nil for the longest lifetime that the fleet allows.
    let seconds = end.map { $0 == 0 ? 0 : min($0 - since, Int64(RequestLimits.longestTimeToLive)) }
    priority = frame.priority == 10 ? .high : .normal
    body = Self.body(frame, payload, seconds, priority)
    if case .failure = SendRequest.parse(body, limits: limits) { throw refusal }
    var properties = BasicProperties()
    properties.describeJSON(id, app: app, at: since)
    self.properties = properties
  }

  /// - Parameter seconds: the lifetime; nil for the longest.
  private static func body(_ frame: BinaryFrame, _ payload: JSONDocument, _ seconds: Int64?, _ priority: Priority) -> [UInt8] {
    var body: [UInt8] = []
    body.reserveCapacity(frame.payload.count + 2 * frame.token.count + 200)
    body += Array(#"{"to":"apns:"#.utf8)
    body += frame.token.hexText
    body += Array(#"","priority":"\#(priority.rawValue)""#.utf8)
    if let seconds { body += Array(#","time_to_live":\#(seconds)"#.utf8) }
    body += Array(#","apns":{"headers":{"apns-push-type":"\#(isBackground(payload) ? "background" : "alert")""#.utf8)
    if let expiry = frame.expiry, expiry > 0 { body += Array(#","apns-expiration":"\#(expiry)""#.utf8) }
    body += Array(#"},"payload":"#.utf8)
    body += frame.payload
    body += Array("}}".utf8)
    return body
  }

  /// True for a push that only wakes the app.
  private static func isBackground(_ payload: JSONDocument) -> Bool {
    guard let aps = payload.value("aps", of: payload.root), payload.kind(aps) == .object, payload.count(aps) == 1,
      let flag = payload.value("content-available", of: aps)
    else { return false }
    return payload.integer(flag) == 1
  }
}
