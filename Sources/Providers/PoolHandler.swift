import PushCore

public enum PoolState: Equatable, Sendable {
  /// No connection, and none is needed. → connecting
  case idle
  /// The first connection is being made, or the access token is being fetched. → probing, open, backingOff
  case connecting
  /// One request at a time until the provider has answered one. → open, backingOff, stopped
  case probing
  /// → paused, backingOff, stopped, closing
  case open
  /// The provider is overloaded or throttles: one probe after a pause. → probing
  case paused(reason: String)
  /// Connecting failed. → connecting
  case backingOff(reason: String)
  /// The provider refuses the credential; a canary asks again once a minute. → idle, connecting
  case stopped(reason: String)
  /// → closed
  case closing
  case closed
}

/// Why a push certainly reached no device.
public enum NotSentReason: Equatable, Sendable {
  /// The provider refused its stream three times. Wait a while before sending it again.
  case refused
  /// No connection could be made.
  case unreachable
  /// The provider refuses the credential or the access token at present.
  case unauthorised
  /// The stream was refused, and the push was no longer wanted when there was room again.
  case unwanted
  /// The pool was shut down before the push was sent.
  case shutDown
}

/// Receives the results of pushes: exactly one of `answered`, `notSent` and `unknown` for each.
public protocol PoolHandler: AnyObject {
  /// The provider's final answer. The pool itself retries after expired tokens and refused streams. `name` is the provider's
  /// name for the message if the caller wanted it and the provider gives one (FCM, APNs' sandbox).
  func answered(tag: Int, meaning: consuming ReplyMeaning, name: [UInt8]?, from pool: ProviderPool)
  /// Certainly not processed: the push may be sent again, by any worker.
  func notSent(tag: Int, why: NotSentReason, from pool: ProviderPool)
  /// True if a push with a refused stream is still to be sent. It may have expired meanwhile.
  func isWanted(tag: Int) -> Bool
  /// Sent, but no answer came: the device may have received it.
  func unknown(tag: Int, reason: String, from pool: ProviderPool)
  /// `capacity` has risen from 0. May be called within a provider's `send` or any call into the pool.
  func capacityAvailable(in pool: ProviderPool)
}

/// An event for operators. Never contains a token, a key or a device.
public enum PoolEvent: Equatable, Sendable {
  case connected
  case disconnected(reason: String)
  case goAway(reason: String)
  case tokenRefreshed
  /// The access token could not be fetched.
  case tokenFailed(reason: String)
  /// The token endpoint refuses the account: an operator must act.
  case tokenRefused(reason: String, credential: String)
  /// - Parameter topic: the refused topic; nil if the credential is refused.
  case credentialStopped(reason: String, topic: String?, credential: String)
  case credentialAccepted
  case backingOff(seconds: Double, reason: String)
  case paused(seconds: Double, reason: String)
  /// The provider has answered no push for so many seconds, although answers are due.
  case silent(seconds: Double)
  /// The provider refuses pushes until an operator fixes the cause. `count` is the number since the last event.
  case alarm(reason: String, advice: String, count: Int)
  /// The provider's clock minus ours in seconds. Reported if an authorisation was refused and the difference is over a minute.
  case clockOff(seconds: Int)
}

public protocol PoolObserver: AnyObject {
  /// - Parameter name: the account that the event concerns, or the pool's oldest.
  func observed(_ event: PoolEvent, of name: String, from pool: ProviderPool)
}
