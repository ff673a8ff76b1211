import PushCore

/// Where a pool stands.
public enum PoolState: Equatable, Sendable {
  /// No connection and none wanted. → connecting
  case idle
  /// A first connection is being made, or the access token fetched. → probing, open, backingOff
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
  /// The end.
  case closed
}

/// Why a push certainly reached nobody.
public enum NotSentReason: Equatable, Sendable {
  /// Refused three times by the provider's connection control: let it wait a while before it comes again.
  case refused
  /// No connection could be made for it.
  case unreachable
  /// The provider does not accept the credential or the access token at present.
  case unauthorised
  /// Turned away, and no longer wanted when there was room for it again.
  case unwanted
  /// The pool was shut down before the push left.
  case shutDown
}

/// What becomes of the pushes handed to a pool: exactly one of `answered`, `notSent` and `unknown` for each.
public protocol PoolHandler: AnyObject {
  /// The provider's final answer; expired tokens and refused streams have been dealt with inside the pool.
  /// `name` is the provider's name for the message where it gives one (FCM, APNs' sandbox) and the caller wanted it.
  func answered(tag: Int, meaning: ReplyMeaning, name: [UInt8]?, from pool: ProviderPool)
  /// Certainly not processed: it may be sent again, here or elsewhere.
  func notSent(tag: Int, why: NotSentReason, from pool: ProviderPool)
  /// Whether a push that was turned away and waited in the pool is still to go: it may have expired meanwhile.
  func isWanted(tag: Int) -> Bool
  /// Sent, and no answer came: the device may have it.
  func unknown(tag: Int, reason: String, from pool: ProviderPool)
  /// `capacity` has risen from 0. May be called within a provider's `send` or any call into the pool.
  func capacityAvailable(in pool: ProviderPool)
}

/// What operators want to know about a pool. Never holds a token, a key or a device.
public enum PoolEvent: Equatable, Sendable {
  case connected
  case disconnected(reason: String)
  case goAway(reason: String)
  case tokenRefreshed
  /// The access token could not be fetched.
  case tokenFailed(reason: String)
  /// The token endpoint refuses the account: an operator has to look.
  case tokenRefused(reason: String, credential: String)
  /// - Parameter topic: which one is refused; nil where it is the credential.
  case credentialStopped(reason: String, topic: String?, credential: String)
  case credentialAccepted
  case backingOff(seconds: Double, reason: String)
  case paused(seconds: Double, reason: String)
  /// The provider refuses pushes for a cause that an operator has to fix; `count` of them since the last event of this kind.
  case alarm(reason: String, advice: String, count: Int)
  /// The provider's clock minus ours, in seconds, when an authorisation was refused and they differ by over a minute.
  case clockOff(seconds: Int)
}

/// Where a pool's events go.
public protocol PoolObserver: AnyObject {
  /// - Parameter name: of the account that it concerns, or of the pool's oldest.
  func observed(_ event: PoolEvent, of name: String, from pool: ProviderPool)
}
