import PushCore

/// The status of an error response (Apple, "Binary Provider API", table A-1).
enum BinaryStatus: UInt8, CaseIterable, Sendable {
  case processingError = 1
  case missingToken = 2
  /// The sender's certificate belongs to no application.
  case missingTopic = 3
  case missingPayload = 4
  case invalidTokenSize = 5
  case invalidPayloadSize = 7
  /// The connection closes without the sender's fault. The identifier is that of the last accepted notification.
  case shutdown = 10
  case protocolError = 128
  case unknown = 255

  /// The status in log lines and metrics, such as `processing_error`.
  var word: String { spelling("\(self)", separator: "_") }
}

/// The only message to a sender: six bytes, then the connection closes.
struct ErrorResponse: Equatable, Sendable {
  var status: BinaryStatus
  var identifier: UInt32

  var bytes: [UInt8] {
    [8, status.rawValue] + (0..<4).map { UInt8(truncatingIfNeeded: identifier >> (24 - 8 * UInt32($0))) }
  }
}
