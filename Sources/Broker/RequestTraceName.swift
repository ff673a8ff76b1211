import PushCore

/// The name of a token or registration in the trace: a stable one-way hash.
public enum RequestTraceName {
  private static let namespace = DeviceIdentity(messageID: Array("pushfleet.trace".utf8))

  public static func of(_ token: [UInt8]) -> [UInt8] { namespace.apnsID(token: token.span) }
}
