import PushCore

/// What stands for a token or a registration in the trace: the same for the same one, and not to be turned back.
public enum RequestTraceName {
  private static let namespace = DeviceIdentity(messageID: Array("pushfleet.trace".utf8))

  public static func of(_ token: [UInt8]) -> [UInt8] { namespace.apnsID(token: token.span) }
}
