/// A request with an idempotency key, as all gateways of a registry know it.
public struct GatewayRequest: Equatable, Sendable {
  public enum State: Equatable, Sendable {
    /// A gateway has it in hand, or had when it ended. Then any other, or nothing.
    case underWay
    /// It may have been taken, and is to be published again. Then `accepted` or `result`.
    case again
    /// The broker has it.
    case accepted
    /// What the worker has said of it.
    case result([UInt8])
  }

  /// SHA-256 of its body.
  public var body: [UInt8]
  public var state: State
}
