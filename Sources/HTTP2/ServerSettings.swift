import Wire

/// Constants of flow control (RFC 9113 §6.9).
enum FlowControl {
  static let initialWindow = 65_535
  static let largestWindow = Int(Int32.max)
}

/// The server's settings that matter to a client (RFC 9113 §6.5.2).
struct ServerSettings {
  enum Identifier: UInt16 {
    case headerTableSize = 1
    case enablePush, maxConcurrentStreams, initialWindowSize, maxFrameSize, maxHeaderListSize
  }

  var headerTableSize = HeaderCompressor.largestTable
  /// `Int.max` if the server sets none.
  var maxConcurrentStreams = Int.max
  var initialWindow = FlowControl.initialWindow

  /// Reads the entries of a SETTINGS frame.
  mutating func read(_ payload: RawSpan) throws(ConnectionFault) {
    guard payload.byteCount % 6 == 0 else {
      throw ConnectionFault(.frameSizeError, "SETTINGS of \(payload.byteCount) bytes")
    }
    for offset in stride(from: 0, to: payload.byteCount, by: 6) {
      try set(payload.bigEndian(UInt16.self, at: offset), Int(payload.bigEndian(UInt32.self, at: offset + 2)))
    }
  }

  private mutating func set(_ identifier: UInt16, _ value: Int) throws(ConnectionFault) {
    switch Identifier(rawValue: identifier) {
    case .headerTableSize: headerTableSize = value
    case .maxConcurrentStreams: maxConcurrentStreams = value == Int(UInt32.max) ? .max : value
    case .initialWindowSize:
      guard value <= FlowControl.largestWindow else {
        throw ConnectionFault(.flowControlError, "SETTINGS_INITIAL_WINDOW_SIZE of \(value)")
      }
      initialWindow = value
    case .enablePush where value != 0:
      throw ConnectionFault(.protocolError, "the server enables server push")
    case .maxFrameSize where !(FrameHeader.payloadLimit...0xff_ffff ~= value):
      throw ConnectionFault(.protocolError, "SETTINGS_MAX_FRAME_SIZE of \(value)")
    case .enablePush, .maxFrameSize, .maxHeaderListSize, nil: break
    }
  }
}
