import TestSupport
import Testing
import Wire

/// Sends its text when opened, echoes nothing; keeps what it got.
private final class Talker: Machine {
  weak var transport: (any Transport)?
  var got: [UInt8] = []
  var calls = 0
  var pending: [UInt8]
  var ends: [TransportEnd] = []
  var isFinished = false
  var deadline = MonotonicTime.distantFuture
  var deadlines: [MonotonicTime] = []

  init(_ text: [UInt8]) { pending = text }
  func transportOpened(at now: MonotonicTime) {}
  func receive(_ bytes: RawSpan, at now: MonotonicTime) {
    calls += 1
    for index in 0..<bytes.byteCount { got.append(bytes.unsafeLoad(fromByteOffset: index, as: UInt8.self)) }
  }
  func transportClosed(_ reason: TransportEnd, at now: MonotonicTime) { ends.append(reason) }
  func writeOutput(to buffer: inout OutputBuffer, at now: MonotonicTime) {
    buffer.append(pending)
    pending = []
  }
  func deadlineReached(at now: MonotonicTime) {
    deadlines.append(now)
    deadline = deadlines.count < 3 ? now.advanced(bySeconds: 10) : .distantFuture
  }
}

@Suite struct MachinePairTests {
  @Test(
    "bytes arrive whole and in order whatever the cutting",
    arguments: [Splitting.whole, .bytes(1), .bytes(7), .random(seed: 9)])
  func splitting(_ splitting: Splitting) {
    let (a, b) = (Talker(Array(0...200)), Talker([1, 2, 3]))
    let pair = MachinePair(client: a, server: b, splitting: splitting)
    pair.open()
    #expect(b.got == Array(0...200))
    #expect(a.got == [1, 2, 3])
    if case .bytes(1) = splitting { #expect(b.calls == 201) }
  }

  @Test("the clock stops at every deadline on the way")
  func deadlines() {
    let a = Talker([])
    let pair = MachinePair(client: a, server: Talker([]))
    pair.open()
    let start = pair.now
    a.deadline = start.advanced(bySeconds: 5)
    pair.advance(by: 60)
    #expect(a.deadlines == [5, 15, 25].map { start.advanced(bySeconds: $0) })
    #expect(pair.now == start.advanced(bySeconds: 60))
  }

  @Test("a paused machine is given nothing until it resumes")
  func pausing() {
    let (a, b) = (Talker([1, 2, 3]), Talker([]))
    let pair = MachinePair(client: a, server: b)
    pair.server.isReadingPaused = true
    pair.open()
    #expect(b.got.isEmpty)
    pair.server.isReadingPaused = false
    pair.exchange()
    #expect(b.got == [1, 2, 3])
  }

  @Test("a finished machine's last bytes arrive before the peer sees the close")
  func finishing() {
    let (a, b) = (Talker([]), Talker([]))
    let pair = MachinePair(client: a, server: b)
    pair.open()
    a.pending = [9]
    a.isFinished = true
    pair.exchange()
    #expect(b.got == [9])
    #expect(a.ends == [.closedLocally])
    #expect(b.ends == [.closedByPeer])
  }

  @Test("a close asked for during a call takes effect after it, once")
  func closing() {
    let (a, b) = (Talker([]), Talker([]))
    let pair = MachinePair(client: a, server: b)
    pair.open()
    a.transport?.close()
    a.transport?.close()
    #expect(a.ends.isEmpty)
    pair.exchange()
    #expect(a.ends == [.closedLocally])
    #expect(b.ends == [.closedByPeer])
  }
}
