import Wire

/// HTTP/1.1 on one connection (RFC 9112): one request after another, in a session's stream table.
final class HTTP1Exchange {
  private let configuration: ClientConfiguration
  private var answer: HTTP1Answer
  /// True if nothing more is written or read.
  private var isOver = false

  init(_ configuration: ClientConfiguration) {
    self.configuration = configuration
    answer = HTTP1Answer(configuration)
  }

  var requestLimit: Int { isOver ? 0 : 1 }

  /// Appends about `limit` bytes of the open request.
  func write(_ streams: inout StreamTable, to output: inout [UInt8], limit: Int) {
    let slot = streams.first
    guard slot >= 0, !isOver else { return }
    if !streams[slot].isSent {
      streams.markFirstSent()
      answer = HTTP1Answer(configuration)
      let (template, bodySize) = (streams[slot].template, streams[slot].body.count)
      streams.withValues(of: slot) { template?.appendHead($0, bodySize: bodySize, to: &output) }
    }
    streams.takeBody(slot, atMost: limit, to: &output)
  }

  /// Returns why the connection is broken; nil if it isn't.
  func receive(_ bytes: RawSpan, _ streams: inout StreamTable, _ events: inout [ClientEvent]) -> String? {
    let slot = streams.first
    guard !isOver else { return nil }
    guard slot >= 0, streams[slot].isSent else {
      // Nothing was asked, so it answers nothing. Servers say 408 before they close an idle connection.
      if slot >= 0 { events.append(.notSent(streamID: streams[slot].streamID)) }
      close(&events)
      return nil
    }
    let count = answer.read(bytes, into: &streams[slot].response)
    streams[slot].isHeaded = answer.isHeaded
    if answer.isComplete {
      events.append(streams.complete(slot, .noError))
      if answer.endsConnection || count < bytes.byteCount || !streams[slot].body.isEmpty { close(&events) }
    }
    isOver = isOver || answer.fault != nil
    return answer.fault
  }

  /// Takes no further request. The open one is not written to its end.
  func close(_ events: inout [ClientEvent]) {
    isOver = true
    events.append(.connectionClosing)
  }

  func connectionEnded() { isOver = true }
}
