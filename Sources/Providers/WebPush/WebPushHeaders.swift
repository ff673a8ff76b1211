import HTTP2
import PushCore

/// The header block of a push message (RFC 8030 §5). The authorization changes twice a day and depends on the key, so it may
/// enter the compression table.
struct WebPushHeaders {
  let template: HeaderTemplate
  private var values = HeaderValues()
  /// The origin is one of WNS.
  private let isWNS: Bool

  /// The path of WNS and its simulator.
  private static let pathOfWNS = Array("/w/?token=".utf8)

  init(_ origin: WebPushOrigin) {
    isWNS = origin.host.hasSuffix(".notify.windows.com")
    template = HeaderTemplate(
      constant: [
        (":method", "POST"), (":scheme", "https"), (":authority", origin.authority),
        ("content-type", "application/octet-stream"), ("content-encoding", "aes128gcm"),
      ],
      variable: [":path", "authorization", "ttl", "urgency", "topic", "x-wns-cache-policy", "content-length"],
      unindexed: [":path", "topic", "content-length"])
  }

  mutating func submit(_ push: borrowing WebPushMessage, authorization: [UInt8], to session: ClientSession, tag: Int) {
    fill(path: push.path, authorization, timeToLive: push.timeToLive, push.urgency, push.topic, size: push.body.count)
    session.submit(template, body: push.body, tag: tag, &values)
  }

  private mutating func fill(
    path: [UInt8], _ authorization: [UInt8], timeToLive: Int64, _ urgency: [UInt8], _ topic: [UInt8]?, size: Int
  ) {
    values.append(path)
    values.append(authorization)
    values.append(decimal: timeToLive)
    values.append(urgency)
    if let topic { values.append(topic) } else { values.appendAbsent() }
    // WNS accepts `TTL: 0` only with this header.
    if isWNS || path.starts(with: Self.pathOfWNS) {
      values.append(Array((timeToLive == 0 ? "no-cache" : "cache").utf8))
    } else {
      values.appendAbsent()
    }
    values.append(decimal: Int64(size))
  }

  /// A message without content to no subscription. Every service answers it, with an error.
  func probe(authorization: [UInt8]) -> ProbeRequest {
    var headers = self
    headers.fill(path: [UInt8(ascii: "/")], authorization, timeToLive: 0, Array("low".utf8), nil, size: 0)
    return ProbeRequest(template: template, values: headers.values, body: [])
  }
}

/// One push message, encrypted for its device.
public struct WebPushMessage: Sendable {
  /// Path and query of the endpoint.
  let path: [UInt8]
  /// The subscription's.
  let key: VAPIDKey
  /// Seconds.
  let timeToLive: Int64
  let urgency: [UInt8]
  let topic: [UInt8]?
  let body: [UInt8]
}
