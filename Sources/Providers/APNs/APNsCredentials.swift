public struct APNsCredentials: Sendable {
  public enum Authentication: Sendable {
    case token(TokenCredential)
    /// The certificate is in the TLS context. `notAfter` in Unix seconds; `topics` as listed in the certificate, if any.
    case certificate(notAfter: Int64, topics: [String] = [])
  }

  public let authentication: Authentication
  public let target: DialTarget

  /// - Parameter target: with a TLS context that has the certificate, if there is one.
  public init(authentication: Authentication, target: DialTarget) {
    self.authentication = authentication
    self.target = target
  }

  /// When the certificate expires, in Unix seconds; nil for a key, which doesn't expire.
  // Swift 6.3.1 can't compile `ConfigurationCheck` with optimisation when this is inlined.
  @inline(never)
  public var notAfter: Int64? { if case .certificate(let end, _) = authentication { end } else { nil } }

  /// True if the certificate lists other push types' forms of the topic, but not the topic itself.
  func isForOtherTypes(of topic: [UInt8]) -> Bool {
    guard case .certificate(_, let topics) = authentication else { return false }
    let topic = String(decoding: topic, as: UTF8.self)
    return !topics.contains(topic) && topics.contains { $0.hasPrefix(topic + ".") }
  }
}
