/// One notification as an old sender writes it.
struct BinaryFrame: Equatable, Sendable {
  /// Bytes that a device token has: 32 ever since there are any; Apple allows up to 100.
  static let tokenSizes = 32...100
  /// Bytes of payload that are taken, whatever the command. (Apple's text on commands 0 and 1 still says 256, its gateway took more.)
  static let payloadLimit = 2048

  /// Of command 0: there is no identifier, and an error is a close without a word.
  var isSimple = false
  /// Opaque, and not unique.
  var identifier: UInt32?
  /// Unix seconds; 0: now or never; nil: no limit.
  var expiry: UInt32?
  /// 10: at once; 5: sparing the device's power.
  var priority: UInt8 = 10
  var token: [UInt8] = []
  var payload: [UInt8] = []
}

/// Why a notification is not taken.
struct BinaryRefusal: Error, Equatable, Sendable {
  var status: BinaryStatus
  /// Nil where the frame has none, or none that could be read.
  var identifier: UInt32?
  /// Of command 0.
  var isSilent = false

  /// Nil for a close without a word.
  var response: ErrorResponse? { isSilent ? nil : ErrorResponse(status: status, identifier: identifier ?? 0) }
}
