/// An HTTP/2 error code of RST_STREAM and GOAWAY (RFC 9113 §7). Unknown codes are kept.
public struct ErrorCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  public let rawValue: UInt32

  @inlinable public init(rawValue: UInt32) { self.rawValue = rawValue }

  public static let noError = ErrorCode(rawValue: 0x0)
  public static let protocolError = ErrorCode(rawValue: 0x1)
  public static let internalError = ErrorCode(rawValue: 0x2)
  static let flowControlError = ErrorCode(rawValue: 0x3)
  static let frameSizeError = ErrorCode(rawValue: 0x6)
  public static let refusedStream = ErrorCode(rawValue: 0x7)
  public static let cancel = ErrorCode(rawValue: 0x8)
  static let compressionError = ErrorCode(rawValue: 0x9)
  static let enhanceYourCalm = ErrorCode(rawValue: 0xb)

  static let names = [
    "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
  ]

  public var description: String {
    rawValue < UInt32(Self.names.count) ? Self.names[Int(rawValue)] : "error code \(rawValue)"
  }
}
