/// One notification of the binary interface.
struct BinaryFrame: Equatable, Sendable {
  /// Bytes of a device token: 32 so far; Apple allows up to 100.
  static let tokenSizes = 32...100
  /// Largest accepted payload in bytes, for all commands. (Apple's text on commands 0 and 1 still says 256; its gateway
  /// accepted more.)
  static let payloadLimit = 2048

  /// True for command 0: the frame has no identifier, and after an error the connection closes without a response.
  var isSimple = false
  /// Opaque, and not unique.
  var identifier: UInt32?
  /// Unix seconds; 0: deliver now or never; nil: no limit.
  var expiry: UInt32?
  /// 10: immediately; 5: saving the device's power.
  var priority: UInt8 = 10
  var token: [UInt8] = []
  var payload: [UInt8] = []
}

struct BinaryRefusal: Error, Equatable, Sendable {
  var status: BinaryStatus
  /// Nil if the frame has no identifier, or an unreadable one.
  var identifier: UInt32?
  /// True for command 0.
  var isSilent = false

  /// Nil if the connection closes without a response.
  var response: ErrorResponse? { isSilent ? nil : ErrorResponse(status: status, identifier: identifier ?? 0) }
}
