import AMQP

/// Splits a client's bytes into frames.
struct FrameBuffer {
  struct Received {
    var type: UInt8
    var channel: UInt16
    var payload: ArraySlice<UInt8>
  }

  private var bytes: [UInt8] = []
  private var head = 0

  mutating func append(_ more: RawSpan) {
    if head > 64 * 1024 || head == bytes.count {
      bytes.removeSubrange(..<head)
      head = 0
    }
    more.append(0..<more.byteCount, to: &bytes)
  }

  mutating func removeAll() {
    bytes = []
    head = 0
  }

  mutating func takeProtocolHeader() -> ArraySlice<UInt8>? {
    guard bytes.count - head >= Frame.protocolHeader.count else { return nil }
    defer { head += Frame.protocolHeader.count }
    return bytes[head...].prefix(Frame.protocolHeader.count)
  }

  mutating func next(frameMax: Int) throws(Refusal) -> Received? {
    guard bytes.count - head >= 7 else { return nil }
    var reader = ByteReader(bytes[head...])
    let (type, channel, size) = (reader.uint8(), reader.uint16(), Int(reader.uint32()))
    guard size <= frameMax - Frame.overhead else {
      throw .frameError("a frame of \(size) bytes exceeds the limit agreed on")
    }
    guard bytes.count - head >= size + Frame.overhead else { return nil }
    let start = head + 7
    head += size + Frame.overhead
    guard bytes[start + size] == Frame.end else { throw .frameError("a frame without its end octet") }
    return Received(type: type, channel: channel, payload: bytes[start..<start + size])
  }
}
