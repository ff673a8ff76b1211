import Wire

/// Why a connection (or a channel on it) ended, and whether trying again can help. Texts are the broker's own words.
public enum ConnectionEnd: Error, Equatable, Sendable {
  /// `close()` was called.
  case closedHere
  /// Wrong user or password, or no shared authentication mechanism (403 in the handshake).
  case authenticationRefused(String)
  /// The virtual host doesn't exist or the user may not enter it (530).
  case virtualHostRefused(String)
  /// The user lacks a permission (403 on a channel).
  case accessRefused(String)
  /// A queue or exchange exists with other settings (406, "inequivalent arg"): an operator must decide.
  case topologyMismatch(String)
  /// Another 406: an unknown delivery tag, a bad expiration.
  case preconditionFailed(String)
  /// A delivery stayed unacknowledged for longer than the broker's `consumer_timeout` (406).
  case consumerTimeout(String)
  /// A queue or exchange doesn't exist (404).
  case notFound(String)
  /// Exclusively held by another connection (405).
  case resourceLocked(String)
  /// An operator or a broker's shutdown closed the connection (320).
  case closedByOperator(String)
  /// Any other close by the broker.
  case closedByBroker(code: UInt16, String)
  /// Nothing came for two heartbeat intervals.
  case heartbeatMissed
  /// This process stood still and sent nothing for two heartbeat intervals: the broker has given the connection up.
  case stoodStill
  case handshakeTimedOut
  /// A publish stayed without its confirm for too long: its outcome is unknown.
  case confirmTimedOut
  /// A declaration stayed without its answer for too long.
  case commandTimedOut
  /// The peer broke the protocol; says where.
  case protocolError(String)
  /// The transport ended without a word from the broker.
  case transport(TransportEnd)

  /// Reconnecting can't help: what is configured here contradicts what exists on the broker.
  public var isFatalConfiguration: Bool {
    if case .topologyMismatch = self { true } else { false }
  }

  /// The broker refuses who we are or what we may do; it can change on the broker's side, so keep trying, slowly.
  public var isRefusal: Bool {
    switch self {
    case .authenticationRefused, .virtualHostRefused, .accessRefused: true
    default: false
    }
  }
}

extension ConnectionEnd {
  /// A close of an open channel.
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

  /// A close of the connection.
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
    case .stoodStill: "this process stood still for so long that the broker has given the connection up"
    case .handshakeTimedOut: "broker did not finish the handshake in time"
    case .confirmTimedOut: "broker did not confirm a publish in time"
    case .commandTimedOut: "broker did not answer a declaration in time"
    case .protocolError(let what): "broker broke the protocol: \(what)"
    case .transport(let end): end.description
    }
  }
}
