import Wire

/// Why a connection (or one of its channels) ended, and whether a retry can help. The texts are the broker's own.
public enum ConnectionEnd: Error, Equatable, Sendable {
  case closedHere
  /// Wrong user or password, or no common authentication mechanism (403 in the handshake).
  case authenticationRefused(String)
  /// The virtual host doesn't exist or the user may not enter it (530).
  case virtualHostRefused(String)
  case accessRefused(String)
  /// A queue or exchange exists with other settings (406, "inequivalent arg"). An operator must decide.
  case topologyMismatch(String)
  /// Another 406: an unknown delivery tag, a bad expiration.
  case preconditionFailed(String)
  /// A delivery stayed unacknowledged longer than the broker's `consumer_timeout` (406).
  case consumerTimeout(String)
  case notFound(String)
  /// Another connection holds the queue exclusively (405).
  case resourceLocked(String)
  /// An operator or a broker's shutdown closed the connection (320).
  case closedByOperator(String)
  case closedByBroker(code: UInt16, String)
  /// The broker sent nothing for two heartbeat intervals.
  case heartbeatMissed
  /// This process stalled and sent nothing for two heartbeat intervals, so the broker has given the connection up.
  case stoodStill
  case handshakeTimedOut
  /// A publish got no confirm in time. Its outcome is unknown.
  case confirmTimedOut
  /// A declaration got no answer in time.
  case commandTimedOut
  /// The peer violated the protocol. The text says where.
  case protocolError(String)
  case transport(TransportEnd)

  /// True if reconnecting can't help: the configuration contradicts objects that exist on the broker.
  public var isFatalConfiguration: Bool {
    if case .topologyMismatch = self { true } else { false }
  }

  /// True if the broker's process for a channel crashed (541). The broker gives no explanation.
  public var isCrash: Bool { self == .closedByBroker(code: 541, "INTERNAL_ERROR") }
  /// True if the broker could not carry out a command (541 with an explanation), such as a declaration while nodes are down.
  public var isFailedCommand: Bool {
    if case .closedByBroker(code: 541, _) = self { !isCrash } else { false }
  }

  /// True if the broker refuses the user or an operation. This can change on the broker, so keep retrying slowly.
  public var isRefusal: Bool {
    switch self {
    case .authenticationRefused, .virtualHostRefused, .accessRefused: true
    default: false
    }
  }
}

extension ConnectionEnd {
  static func channel(code: UInt16, text: String) -> ConnectionEnd {
    switch code {
    case 403: .accessRefused(text)
    case 404: .notFound(text)
    case 405: .resourceLocked(text)
    case 406 where text.contains("inequivalent arg") || text.contains("invalid arg"): .topologyMismatch(text)
    case 406 where text.contains("timed out"): .consumerTimeout(text)
    case 406: .preconditionFailed(text)
    default: .closedByBroker(code: code, text)
    }
  }

  static func connection(code: UInt16, text: String, duringHandshake: Bool) -> ConnectionEnd {
    switch code {
    case 403 where duringHandshake: .authenticationRefused(text)
    case 530 where duringHandshake: .virtualHostRefused(text)
    case 320: .closedByOperator(text)
    default: .channel(code: code, text: text)
    }
  }
}

extension ConnectionEnd: CustomStringConvertible {
  public var description: String {
    switch self {
    case .closedHere: "closed here"
    case .authenticationRefused(let text): "broker refused the user: \(text)"
    case .virtualHostRefused(let text): "broker refused the virtual host: \(text)"
    case .accessRefused(let text): "broker refused access: \(text)"
    case .topologyMismatch(let text): "the broker's queues or exchanges have other settings: \(text)"
    case .preconditionFailed(let text): "broker closed the channel: \(text)"
    case .consumerTimeout(let text): "a delivery was held for too long: \(text)"
    case .notFound(let text): "missing on the broker: \(text)"
    case .resourceLocked(let text): "held by another connection: \(text)"
    case .closedByOperator(let text): "broker closed the connection: \(text)"
    case .closedByBroker(let code, let text): "broker closed with \(code): \(text)"
    case .heartbeatMissed: "no sign of life from the broker"
    case .stoodStill: "this process stalled for so long that the broker has given the connection up"
    case .handshakeTimedOut: "broker did not finish the handshake in time"
    case .confirmTimedOut: "broker did not confirm a publish in time"
    case .commandTimedOut: "broker did not answer a declaration in time"
    case .protocolError(let what): "broker broke the protocol: \(what)"
    case .transport(let end): end.description
    }
  }
}
