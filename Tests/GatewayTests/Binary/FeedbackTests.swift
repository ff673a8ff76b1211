import PushCore
import Reactor
import Testing
import Wire

@testable import Gateway

/// Replaces a listener's link.
private final class TestLink: AcceptedTransport {
  let machine: any Machine
  var peerUserID: String? = "com.example.app"
  var isOutputAcknowledged = false
  var isReadingPaused = false
  private(set) var isOutputFinished = false
  private var buffer = OutputBuffer()

  init(_ machine: any Machine) {
    self.machine = machine
    machine.transport = self
  }

  func outputReady() {}
  func close() {}
  func finishOutput() { isOutputFinished = true }

  func written(at now: MonotonicTime) -> [UInt8] {
    var before = -1
    while buffer.count != before {
      before = buffer.count
      machine.writeOutput(to: &buffer, at: now)
    }
    defer { buffer.take(buffer.count) }
    return Array(buffer.bytes[buffer.head...])
  }
}

private final class TestList {
  private(set) var isTaken: Bool?
  func settle(isTaken: Bool) { if self.isTaken == nil { self.isTaken = isTaken } }
}

@Suite("The feedback service")
struct FeedbackTests {
  private let start = MonotonicTime(nanoseconds: 0)
  private let list = TestList()
  private let connection: FeedbackConnection
  private let link: TestLink

  init() {
    connection = FeedbackConnection(
      open: { [list] app, _ in
        #expect(app == Array("com.example.app".utf8))
        return list.settle
      },
      identify: { ($0 as? any AcceptedTransport)?.peerUserID.map { Array($0.utf8) } })
    link = TestLink(connection)
  }

  private func openAndWrite() {
    connection.transportOpened(at: start)
    connection.feedbackCame([1, 2, 3])
    connection.feedbackCame([4])
  }

  @Test("writes the list's entries, then the end; they are removed when the peer closes in good order")
  func read() {
    openAndWrite()
    #expect(link.written(at: start) == [1, 2, 3, 4] && !link.isOutputFinished)
    connection.feedbackEnded()
    #expect(link.written(at: start) == [] && link.isOutputFinished && list.isTaken == nil)
    connection.transportClosed(.closedByPeer, at: start)
    #expect(list.isTaken == true)
  }

  @Test("writes a list of any length in portions")
  func long() {
    openAndWrite()
    connection.feedbackCame(Array(repeating: 5, count: 200_000))
    connection.feedbackEnded()
    #expect(link.written(at: start).count == 200_004 && link.isOutputFinished)
  }

  @Test("keeps everything if a peer closes before the end")
  func closedEarly() {
    openAndWrite()
    _ = link.written(at: start)
    connection.transportClosed(.closedByPeer, at: start)
    #expect(list.isTaken == false)
  }

  @Test("gives everything back on a reset after the end")
  func reset() {
    openAndWrite()
    connection.feedbackEnded()
    _ = link.written(at: start)
    connection.transportClosed(.failed("reset"), at: start)
    #expect(list.isTaken == false)
  }

  @Test("counts data as read by a peer that doesn't close if its system has acknowledged them", arguments: [true, false])
  func staysOpen(_ isAcknowledged: Bool) {
    openAndWrite()
    connection.feedbackEnded()
    _ = link.written(at: start)
    #expect(connection.deadline == start.advanced(bySeconds: 10))
    link.isOutputAcknowledged = isAcknowledged
    connection.deadlineReached(at: connection.deadline)
    #expect(list.isTaken == isAcknowledged && connection.isFinished)
  }

  @Test("gives no list that can't be read to its end")
  func failed() {
    openAndWrite()
    connection.feedbackFailed()
    #expect(list.isTaken == false && connection.isFinished && !link.isOutputFinished)
  }

  @Test("gives no list to a certificate without an application")
  func stranger() {
    link.peerUserID = nil
    connection.transportOpened(at: start)
    #expect(connection.isFinished && list.isTaken == nil)
  }

  private func event(
    _ event: FeedbackEvent.Event, platform: Platform = .apns, token: String, since: Int64?, kind: String? = nil
  )
    -> [UInt8]
  {
    FeedbackEvent(
      event: event, app: Array("a".utf8), platform: platform, token: Array(token.utf8), reason: "Unregistered", status: 410,
      invalidSince: since, messageID: Array("m".utf8), observedAt: 1_800_000_001_999,
      details: FeedbackEvent.Details(kind: kind)
    ).json()
  }

  @Test("writes time, length and token; the time is the provider's, or else the time of observation")
  func tuple() {
    let token = String(repeating: "0aF1", count: 16)
    let bytes = Array(repeating: [0x0A, 0xF1] as [UInt8], count: 16).flatMap { $0 }
    #expect(
      FeedbackTuple.bytes(event(.notRegistered, token: token, since: 1_700_000_000_500), listsBadTokens: false)
        == OldSender.big(1_700_000_000, 4) + [0, 32] + bytes)
    #expect(
      FeedbackTuple.bytes(event(.notRegistered, token: token, since: nil, kind: "alert"), listsBadTokens: false)
        == OldSender.big(1_800_000_001, 4) + [0, 32] + bytes)
    #expect(
      FeedbackTuple.bytes(event(.notRegistered, token: "0a", since: 9_999_999_999_999), listsBadTokens: false)?.prefix(4)
        == [255, 255, 255, 255])
  }

  @Test("lists only gone APNs tokens; a bad token only if the setting says so")
  func others() {
    let token = String(repeating: "0af1", count: 16)
    let bad = event(.invalidRegistration, token: token, since: nil)
    #expect(FeedbackTuple.bytes(bad, listsBadTokens: false) == nil)
    #expect(
      FeedbackTuple.bytes(bad, listsBadTokens: true)
        == OldSender.big(1_800_000_001, 4) + [0, 32] + Array(repeating: [0x0A, 0xF1] as [UInt8], count: 16).flatMap { $0 })
    let others = [
      event(.stale, token: token, since: nil), event(.mismatchSenderID, token: token, since: nil),
      event(.notRegistered, platform: .fcm, token: token, since: nil),
      event(.invalidRegistration, platform: .fcm, token: token, since: nil),
      event(.notRegistered, token: token, since: nil, kind: "live_activity"),
      event(.notRegistered, token: "no token", since: nil), event(.notRegistered, token: "abc", since: nil),
    ]
    for bytes in others + ["", "[]", "{}", #"{"event":1}"#].map({ Array($0.utf8) }) {
      #expect(FeedbackTuple.bytes(bytes, listsBadTokens: true) == nil)
    }
  }
}
