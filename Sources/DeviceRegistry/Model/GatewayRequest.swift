/// A request with an idempotency key, shared by all gateways of a registry.
public struct GatewayRequest: Equatable, Sendable {
  public enum State: Equatable, Sendable {
    /// A gateway is processing it, or ended while doing so. Then any other, or nothing.
    case underWay
    /// It may have been accepted and must be published again. Then `accepted` or `result`.
    case again
    /// The broker has confirmed it.
    case accepted
    case result([UInt8])
  }

  /// SHA-256 of its body.
  public var body: [UInt8]
  public var state: State

  /// The name of an application's message in the registry. Neither part has a zero byte.
  public static func message(_ id: [UInt8], app: [UInt8]) -> [UInt8] { app + [0] + id }
}
