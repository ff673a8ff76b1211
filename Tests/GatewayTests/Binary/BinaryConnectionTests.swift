import MachineDriver
import PushCore
import Testing
import Wire

@testable import Gateway

/// A door that publishes nothing itself: the test confirms.
private final class TestPublisher: BinaryPublisher {
  var wallClock: Int64 = 1_800_000_000_000
  var limits = RequestLimits()
  var room = Int.max
  private(set) var published: [BinaryRequest] = []
  private var answers: [Int: (Bool) -> Void] = [:]
  private(set) var farewells: [ErrorResponse?] = []
  private(set) var finishedCount = 0
  private(set) var waiting = 0

  func hasRoom(for connection: BinaryConnection) -> Bool {
    if published.count < room { return true }
    waiting += 1
    return false
  }

  func publish(_ request: BinaryRequest, _ settled: @escaping (Bool) -> Void) {
    answers[published.count] = settled
    published.append(request)
  }

  func settle(_ index: Int, _ isTaken: Bool = true) { answers.removeValue(forKey: index)?(isTaken) }
  func settleAll() { for index in published.indices { settle(index) } }
  func noteFarewell(_ response: ErrorResponse?, of app: [UInt8]?) { farewells.append(response) }
  private(set) var unheard: [ErrorResponse?] = []
  private(set) var lost = 0
  func noteUnheard(_ response: ErrorResponse?, lost: Int, of app: [UInt8]?) {
    unheard.append(response)
    self.lost += lost
  }
  func opened(_ connection: BinaryConnection) -> Bool { true }
  func finished(_ connection: BinaryConnection) { finishedCount += 1 }
  private(set) var idle: [Bool] = []
  func heard(_ connection: BinaryConnection, isIdle: Bool) { idle.append(isIdle) }
}

@Suite("A sender's connection to the binary door")
struct BinaryConnectionTests {
  private let publisher = TestPublisher()
  private let connection: BinaryConnection
  private let driver: MachineDriver
  private let start = MonotonicTime(nanoseconds: 1_000_000_000)

  init() {
    connection = BinaryConnection(publisher) { _ in Array("com.example.app".utf8) }
    driver = MachineDriver(connection)
    driver.open(at: start)
  }

  private func say(_ bytes: [UInt8]) { driver.receive(bytes, at: start) }
  private func heard() -> [UInt8] { driver.collect(at: start) }

  @Test("a connection that makes room for others gets its last notification's status; one without notifications is just closed")
  func room() {
    say(OldSender.framed(7))
    #expect(publisher.idle == [false])
    publisher.settleAll()
    #expect(publisher.idle == [false, true])
    connection.makeRoom()
    #expect(heard() == [8, 10, 0, 0, 0, 7] && connection.isFinished)
    let silent = BinaryConnection(publisher) { _ in nil }
    let driver = MachineDriver(silent)
    driver.open(at: start)
    silent.makeRoom()
    #expect(driver.collect(at: start) == [])
    _ = driver.settle(at: start)
    #expect(driver.end == .closedLocally)
  }

  @Test("nothing is sent to it as long as all is well")
  func silence() {
    for identifier in 0..<3 as Range<UInt32> { say(OldSender.framed(identifier)) }
    publisher.settleAll()
    #expect(publisher.published.count == 3 && heard() == [] && !connection.isFinished)
    driver.finish(.closedByPeer, at: start)
    #expect(publisher.finishedCount == 1)
  }

  @Test("an error waits for the confirms of earlier notifications; later ones are discarded")
  func refusalInOrder() {
    say(OldSender.framed(1) + OldSender.framed(2) + OldSender.framed(3, token: []) + OldSender.framed(4))
    #expect(publisher.published.count == 2 && heard() == [] && !connection.isFinished)
    publisher.settle(1)
    say(OldSender.framed(5))
    #expect(heard() == [] && !connection.isFinished)
    publisher.settle(0)
    #expect(heard() == OldSender.response(.missingToken, 3) && connection.isFinished && publisher.published.count == 2)
    #expect(driver.settle(at: start) && driver.end == .closedLocally && publisher.finishedCount == 1)
  }

  @Test("identifiers may repeat, and may be 0")
  func identifiers() {
    say(OldSender.framed(0) + OldSender.framed(0) + OldSender.framed(0, payload: []))
    publisher.settleAll()
    #expect(publisher.published.count == 2 && heard() == OldSender.response(.missingPayload, 0))
  }

  @Test("command 0 is refused by a silent close, after the confirms of earlier notifications")
  func simple() {
    say(OldSender.framed(1) + OldSender.simple(token: [1]))
    #expect(!connection.isFinished)
    publisher.settle(0)
    #expect(heard() == [] && connection.isFinished && publisher.farewells == [nil])
  }

  @Test("after a failed publication the sender learns from which notification to repeat")
  func lostInTheMiddle() {
    say((10...14).flatMap { OldSender.framed($0) })
    for index in [0, 1, 3] { publisher.settle(index) }
    publisher.settle(2, false)
    #expect(!connection.isFinished)
    publisher.settle(4)
    #expect(heard() == OldSender.response(.shutdown, 11) && connection.isFinished)
  }

  @Test("if the first publication fails, its notification is named as failed")
  func firstLost() {
    say(OldSender.framed(10) + OldSender.framed(11))
    publisher.settle(0, false)
    publisher.settle(1)
    #expect(heard() == OldSender.response(.processingError, 10))
  }

  @Test("a lost notification is reported before an invalid one")
  func lostBeforeWrong() {
    say(OldSender.framed(1) + OldSender.framed(2) + OldSender.framed(3, token: []))
    publisher.settle(0)
    publisher.settle(1, false)
    #expect(heard() == OldSender.response(.shutdown, 1))
  }

  @Test("a drain accepts nothing more and names the last accepted notification")
  func drain() {
    say(OldSender.framed(1) + OldSender.framed(2) + OldSender.framed(3).prefix(10))
    connection.drain()
    say(Array(OldSender.framed(3).dropFirst(10)))
    #expect(publisher.published.count == 2 && !connection.isFinished)
    publisher.settleAll()
    #expect(heard() == OldSender.response(.shutdown, 2) && connection.isFinished)
  }

  @Test("a drain sends nothing to a sender without notifications or identifiers")
  func silentDrain() {
    say(OldSender.simple())
    publisher.settleAll()
    connection.drain()
    #expect(heard() == [] && connection.isFinished && publisher.published.count == 1)
  }

  @Test("complete notifications before a close are published, without a report", arguments: [1, 100, .max])
  func closeInTheMiddle(_ cut: Int) {
    var rest = ((0..<1000).flatMap { OldSender.framed($0) } + OldSender.framed(1000).prefix(20))[...]
    while !rest.isEmpty {
      say(Array(rest.prefix(cut)))
      rest = rest.dropFirst(cut)
      if driver.isReadingPaused { publisher.settleAll() }
    }
    driver.finish(.closedByPeer, at: start)
    #expect(publisher.finishedCount == 0)
    var rounds = 0
    while publisher.finishedCount == 0, rounds < 20 {
      publisher.settleAll()
      rounds += 1
    }
    #expect(publisher.published.count == 1000 && publisher.finishedCount == 1)
  }

  @Test("a drain publishes the notifications of a sender that has gone")
  func drainOfTheGone() {
    publisher.room = 1
    say(OldSender.framed(1) + OldSender.framed(2))
    driver.finish(.closedByPeer, at: start)
    connection.drain()
    publisher.settle(0)
    publisher.room = 2
    connection.roomCame()
    publisher.settleAll()
    #expect(publisher.published.count == 2 && publisher.finishedCount == 1)
  }

  @Test("the notifications of a sender that has gone are published even if some are lost, with one report")
  func lostOfTheGone() {
    publisher.room = 2
    say((1...4).flatMap { OldSender.framed($0) })
    driver.finish(.closedByPeer, at: start)
    publisher.settle(0, false)
    publisher.room = 4
    connection.roomCame()
    publisher.settle(1)
    publisher.settle(2, false)
    publisher.settle(3)
    #expect(publisher.published.count == 4 && publisher.finishedCount == 1)
    #expect(publisher.farewells.isEmpty && publisher.unheard == [nil] && publisher.lost == 2)
  }

  @Test("an answer to a closed connection is dropped, and a close during a drain is not reported")
  func unheard() {
    say(OldSender.framed(1) + OldSender.framed(2, token: []))
    driver.finish(.closedByPeer, at: start)
    publisher.settleAll()
    #expect(
      publisher.farewells.isEmpty && publisher.unheard == [ErrorResponse(status: .missingToken, identifier: 2)]
        && publisher.lost == 0)
    let other = BinaryConnection(publisher) { _ in [] }
    let driver = MachineDriver(other)
    driver.open(at: start)
    driver.receive(OldSender.framed(1), at: start)
    other.drain()
    driver.finish(.closedByPeer, at: start)
    publisher.settle(1)
    #expect(publisher.finishedCount == 2 && publisher.farewells.isEmpty && publisher.unheard.count == 1)
  }

  @Test("reading stops while the limit of notifications waits for confirms")
  func backPressure() {
    say((0..<300).flatMap { OldSender.framed($0) })
    #expect(publisher.published.count == BinaryConnection.window && driver.isReadingPaused)
    publisher.settle(0)
    #expect(publisher.published.count == BinaryConnection.window + 1 && driver.isReadingPaused)
    publisher.settleAll()
    #expect(publisher.published.count == 300 && !driver.isReadingPaused)
  }

  @Test("reading stops while all connections together have no room")
  func noRoom() {
    publisher.room = 1
    say(OldSender.framed(1) + OldSender.framed(2))
    #expect(publisher.published.count == 1 && driver.isReadingPaused && publisher.waiting == 1)
    publisher.room = 2
    connection.roomCame()
    #expect(publisher.published.count == 2 && !driver.isReadingPaused)
  }

  @Test("a certificate without an application has no topic")
  func noApp() {
    let stranger = BinaryConnection(publisher) { _ in nil }
    let driver = MachineDriver(stranger)
    driver.open(at: start)
    driver.receive(OldSender.enhanced(5), at: start)
    #expect(driver.collect(at: start) == OldSender.response(.missingTopic, 5) && publisher.published.isEmpty)
  }

  @Test("a silent connection is closed as in a drain: after an hour, or after a minute within a notification")
  func idle() {
    say(OldSender.framed(1))
    publisher.settleAll()
    #expect(connection.deadline == start.advanced(bySeconds: 3600))
    say([2, 0])
    #expect(connection.deadline == start.advanced(bySeconds: 60))
    driver.checkDeadline(at: connection.deadline)
    #expect(heard() == OldSender.response(.shutdown, 1) && connection.isFinished)
  }

  @Test("silence doesn't close a connection while confirms are awaited")
  func idleWhileWaiting() {
    say(OldSender.framed(1))
    driver.checkDeadline(at: connection.deadline)
    #expect(!connection.isFinished)
    publisher.settleAll()
    driver.checkDeadline(at: connection.deadline)
    #expect(connection.isFinished)
  }

  @Test("a failed handshake leaves nothing behind")
  func refusedHandshake() {
    let other = BinaryConnection(publisher) { _ in nil }
    MachineDriver(other).finish(.handshakeFailed("no certificate"), at: start)
    #expect(publisher.finishedCount == 1)
  }
}
