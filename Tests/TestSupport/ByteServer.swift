import Wire

/// Builds an HTTP/2 frame (RFC 9113 §4.1).
public func frame(_ type: UInt8, flags: UInt8 = 0, stream: UInt32 = 0, _ payload: [UInt8] = []) -> [UInt8] {
  let count = payload.count
  return [UInt8(count >> 16 & 0xff), UInt8(count >> 8 & 0xff), UInt8(count & 0xff), type, flags]
    + withUnsafeBytes(of: stream.bigEndian, Array.init) + payload
}

/// The header block `:status: 200` (RFC 7541, static table).
public let status200: [UInt8] = [0x88]
public let emptySettings = frame(4)

/// Bytes that make a client give up its session. Before them, the server refuses a stream, so that its request may be sent again
/// before the session is known to have ended.
public enum GivenUp: String, CaseIterable, Sendable {
  /// More CONTINUATION frames than the client accepts.
  case continuations
  /// More SETTINGS than the client acknowledges at once.
  case settings

  public func bytes(refusing stream: UInt32, open other: UInt32) -> [UInt8] {
    let refusal = frame(3, stream: stream, [0, 0, 0, 7])
    switch self {
    case .continuations:
      return refusal + frame(1, flags: 0, stream: other, status200) + (0..<9).flatMap { _ in frame(9, stream: other) }
    case .settings: return refusal + (0..<1001).flatMap { _ in emptySettings }
    }
  }
}

/// An HTTP/2 server that sends the bytes of the test, valid or not.
public final class ByteServer: Machine {
  public weak var transport: (any Transport)?
  /// Returns the bytes to send for a request. Gets its stream and its number on the connection, from 1.
  private let answer: (UInt32, Int) -> [UInt8]
  private var output: [UInt8]
  private var input: [UInt8] = []
  private var hasPreface = false
  private var requests = 0

  public init(greeting: [UInt8] = emptySettings, answer: @escaping (UInt32, Int) -> [UInt8] = { _, _ in [] }) {
    output = greeting
    self.answer = answer
  }

  public func transportOpened(at now: MonotonicTime) { transport?.outputReady() }

  public func receive(_ bytes: RawSpan, at now: MonotonicTime) {
    bytes.withUnsafeBytes { input += $0 }
    if !hasPreface, input.count >= 24 {
      hasPreface = true
      input.removeFirst(24)
    }
    while hasPreface, input.count >= 9 {
      let size = Int(input[0]) << 16 | Int(input[1]) << 8 | Int(input[2])
      guard input.count >= 9 + size else { break }
      if input[3] == 1 {
        requests += 1
        output += answer(input[5..<9].reduce(0) { $0 << 8 | UInt32($1) }, requests)
      }
      input.removeFirst(9 + size)
    }
    transport?.outputReady()
  }

  public func writeOutput(to buffer: inout OutputBuffer, at now: MonotonicTime) {
    buffer.append(output)
    output = []
  }

  public func transportClosed(_ reason: TransportEnd, at now: MonotonicTime) {}
  public var isFinished: Bool { false }
  public var deadline: MonotonicTime { .distantFuture }
  public func deadlineReached(at now: MonotonicTime) {}
}
