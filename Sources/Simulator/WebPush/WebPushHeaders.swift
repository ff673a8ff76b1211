import HTTP2

/// The headers of a push, read as RFC 8030 §5 and RFC 8291 §4 define them.
struct WebPushHeaders {
  /// Seconds.
  let timeToLive: Int64
  let topic: [UInt8]?

  static let longestBody = 4096

  init(_ request: ServerRequest) throws(WebPushRefusal) {
    guard let ttl = try Self.single("ttl", of: request, else: .badTTL) else { throw .missingTTL }
    guard (1...18).contains(ttl.count), ttl.allSatisfy({ $0 &- 0x30 < 10 }) else { throw .badTTL }
    timeToLive = ttl.reduce(0) { $0 * 10 + Int64($1 - 0x30) }
    if let urgency = try Self.single("urgency", of: request, else: .badUrgency) {
      guard ["very-low", "low", "normal", "high"].contains(where: { urgency.elementsEqual($0.utf8) }) else { throw .badUrgency }
    }
    topic = try Self.single("topic", of: request, else: .badTopic)
    if let topic {
      guard (1...32).contains(topic.count), topic.allSatisfy({ Self.topicCharacters.contains($0) }) else { throw .badTopic }
    }
    let encoding = try Self.single("content-encoding", of: request, else: .badEncoding)
    guard request.bodySize > 0 ? encoding == Array("aes128gcm".utf8) : encoding == nil else { throw .badEncoding }
    guard request.bodySize <= Self.longestBody else { throw .tooLarge }
  }

  /// The value of a header that may be given once.
  private static func single(
    _ name: String, of request: ServerRequest, else refusal: WebPushRefusal
  ) throws(WebPushRefusal) -> [UInt8]? {
    let found = request.headers.filter { $0.name.elementsEqual(name.utf8) }
    guard found.count <= 1 else { throw refusal }
    return found.first?.value
  }

  private static let topicCharacters = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_".utf8)
}
