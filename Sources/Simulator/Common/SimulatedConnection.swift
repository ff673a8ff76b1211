import HTTP2

/// A connection to a simulator, for its answers and faults. Streams are numbered by the protocol.
protocol SimulatedConnection: AnyObject {
  func respond(_ stream: Int32, status: Int, headers: [HeaderField], body: [UInt8])
  func reset(_ stream: Int32, _ code: ErrorCode)
  func goAway(lastStreamID: Int32, code: ErrorCode, debugData: [UInt8])
  func setMaxConcurrentStreams(_ limit: Int)
  func abort()
}

extension ServerSession: SimulatedConnection {}
