import PushCore
import Testing
import Wire

@testable import Gateway

/// A door that publishes nothing by itself: the test confirms.
private final class TestDesk: BinaryDesk {
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
  private let desk = TestDesk()
  private let connection: BinaryConnection
  private let driver: MachineDriver
  private let start = MonotonicTime(nanoseconds: 1_000_000_000)

  init() {
    connection = BinaryConnection(desk) { _ in Array("com.example.app".utf8) }
    driver = MachineDriver(connection)
    driver.open(at: start)
  }

  private func say(_ bytes: [UInt8]) { driver.receive(bytes, at: start) }
  private func heard() -> [UInt8] { driver.collect(at: start) }

  @Test("who makes room for others is told its last notification; who has sent none just goes")
  func room() {
    say(OldSender.framed(7))
    #expect(desk.idle == [false])
    desk.settleAll()
    #expect(desk.idle == [false, true])
    connection.makeRoom()
    #expect(heard() == [8, 10, 0, 0, 0, 7] && connection.isFinished)
    let silent = BinaryConnection(desk) { _ in nil }
    let driver = MachineDriver(silent)
    driver.open(at: start)
    silent.makeRoom()
    #expect(driver.collect(at: start) == [])
    _ = driver.settle(at: start)
    #expect(driver.end == .closedLocally)
  }

  @Test("nothing is said as long as all is well")
  func silence() {
    for identifier in 0..<3 as Range<UInt32> { say(OldSender.framed(identifier)) }
    desk.settleAll()
    #expect(desk.published.count == 3 && heard() == [] && !connection.isFinished)
    driver.finish(.closedByPeer, at: start)
    #expect(desk.finishedCount == 1)
  }

  @Test("an error waits until what came before it is confirmed; what follows it is discarded")
  func refusalInOrder() {
    say(OldSender.framed(1) + OldSender.framed(2) + OldSender.framed(3, token: []) + OldSender.framed(4))
    #expect(desk.published.count == 2 && heard() == [] && !connection.isFinished)
    desk.settle(1)
    say(OldSender.framed(5))
    #expect(heard() == [] && !connection.isFinished)
    desk.settle(0)
    #expect(heard() == OldSender.response(.missingToken, 3) && connection.isFinished && desk.published.count == 2)
    #expect(driver.settle(at: start) && driver.end == .closedLocally && desk.finishedCount == 1)
  }

  @Test("identifiers may repeat, and may be 0")
  func identifiers() {
    say(OldSender.framed(0) + OldSender.framed(0) + OldSender.framed(0, payload: []))
    desk.settleAll()
    #expect(desk.published.count == 2 && heard() == OldSender.response(.missingPayload, 0))
  }

  @Test("command 0 is refused by a close without a word, after what came before it is confirmed")
  func simple() {
    say(OldSender.framed(1) + OldSender.simple(token: [1]))
    #expect(!connection.isFinished)
    desk.settle(0)
    #expect(heard() == [] && connection.isFinished && desk.farewells == [nil])
  }

  @Test("where a notification can't be published, the sender is told from where on to send again")
  func lostInTheMiddle() {
    say((10...14).flatMap { OldSender.framed($0) })
    for index in [0, 1, 3] { desk.settle(index) }
    desk.settle(2, false)
    #expect(!connection.isFinished)
    desk.settle(4)
    #expect(heard() == OldSender.response(.shutdown, 11) && connection.isFinished)
  }

  @Test("where the first can't be published, it is named as failed")
  func firstLost() {
    say(OldSender.framed(10) + OldSender.framed(11))
    desk.settle(0, false)
    desk.settle(1)
    #expect(heard() == OldSender.response(.processingError, 10))
  }

  @Test("what is lost comes before what is wrong")
  func lostBeforeWrong() {
    say(OldSender.framed(1) + OldSender.framed(2) + OldSender.framed(3, token: []))
    desk.settle(0)
    desk.settle(1, false)
    #expect(heard() == OldSender.response(.shutdown, 1))
  }

  @Test("a drain takes nothing more and names the last that was taken")
  func drain() {
    say(OldSender.framed(1) + OldSender.framed(2) + OldSender.framed(3).prefix(10))
    connection.drain()
    say(Array(OldSender.framed(3).dropFirst(10)))
    #expect(desk.published.count == 2 && !connection.isFinished)
    desk.settleAll()
    #expect(heard() == OldSender.response(.shutdown, 2) && connection.isFinished)
  }

  @Test("a drain says nothing to who has sent nothing, or nothing with an identifier")
  func silentDrain() {
    say(OldSender.simple())
    desk.settleAll()
    connection.drain()
    #expect(heard() == [] && connection.isFinished && desk.published.count == 1)
  }

  @Test("what came whole before a close is published, though nobody hears of it", arguments: [1, 100, .max])
  func closeInTheMiddle(_ cut: Int) {
    var rest = ((0..<1000).flatMap { OldSender.framed($0) } + OldSender.framed(1000).prefix(20))[...]
    while !rest.isEmpty {
      say(Array(rest.prefix(cut)))
      rest = rest.dropFirst(cut)
      if driver.isReadingPaused { desk.settleAll() }
    }
    driver.finish(.closedByPeer, at: start)
    #expect(desk.finishedCount == 0)
    var rounds = 0
    while desk.finishedCount == 0, rounds < 20 {
      desk.settleAll()
      rounds += 1
    }
    #expect(desk.published.count == 1000 && desk.finishedCount == 1)
  }

  @Test("a drain takes what a sender that has gone has left")
  func drainOfTheGone() {
    desk.room = 1
    say(OldSender.framed(1) + OldSender.framed(2))
    driver.finish(.closedByPeer, at: start)
    connection.drain()
    desk.settle(0)
    desk.room = 2
    connection.roomCame()
    desk.settleAll()
    #expect(desk.published.count == 2 && desk.finishedCount == 1)
  }

  @Test("what a sender that has gone has left is published though some of it is lost, and that is said once")
  func lostOfTheGone() {
    desk.room = 2
    say((1...4).flatMap { OldSender.framed($0) })
    driver.finish(.closedByPeer, at: start)
    desk.settle(0, false)
    desk.room = 4
    connection.roomCame()
    desk.settle(1)
    desk.settle(2, false)
    desk.settle(3)
    #expect(desk.published.count == 4 && desk.finishedCount == 1)
    #expect(desk.farewells.isEmpty && desk.unheard == [nil] && desk.lost == 2)
  }

  @Test("a response that nobody is there for is none; a close in a drain is nothing to tell of")
  func unheard() {
    say(OldSender.framed(1) + OldSender.framed(2, token: []))
    driver.finish(.closedByPeer, at: start)
    desk.settleAll()
    #expect(desk.farewells.isEmpty && desk.unheard == [ErrorResponse(status: .missingToken, identifier: 2)] && desk.lost == 0)
    let other = BinaryConnection(desk) { _ in [] }
    let driver = MachineDriver(other)
    driver.open(at: start)
    driver.receive(OldSender.framed(1), at: start)
    other.drain()
    driver.finish(.closedByPeer, at: start)
    desk.settle(1)
    #expect(desk.finishedCount == 2 && desk.farewells.isEmpty && desk.unheard.count == 1)
  }

  @Test("nothing is read while as many as allowed wait for their confirms")
  func backPressure() {
    say((0..<300).flatMap { OldSender.framed($0) })
    #expect(desk.published.count == BinaryConnection.window && driver.isReadingPaused)
    desk.settle(0)
    #expect(desk.published.count == BinaryConnection.window + 1 && driver.isReadingPaused)
    desk.settleAll()
    #expect(desk.published.count == 300 && !driver.isReadingPaused)
  }

  @Test("nothing is read while all connections together have no room")
  func noRoom() {
    desk.room = 1
    say(OldSender.framed(1) + OldSender.framed(2))
    #expect(desk.published.count == 1 && driver.isReadingPaused && desk.waiting == 1)
    desk.room = 2
    connection.roomCame()
    #expect(desk.published.count == 2 && !driver.isReadingPaused)
  }

  @Test("a certificate without an application has no topic")
  func noApp() {
    let stranger = BinaryConnection(desk) { _ in nil }
    let driver = MachineDriver(stranger)
    driver.open(at: start)
    driver.receive(OldSender.enhanced(5), at: start)
    #expect(driver.collect(at: start) == OldSender.response(.missingTopic, 5) && desk.published.isEmpty)
  }

  @Test("a connection that falls silent is closed as in a drain: after an hour, or after a minute within a notification")
  func idle() {
    say(OldSender.framed(1))
    desk.settleAll()
    #expect(connection.deadline == start.advanced(bySeconds: 3600))
    say([2, 0])
    #expect(connection.deadline == start.advanced(bySeconds: 60))
    driver.checkDeadline(at: connection.deadline)
    #expect(heard() == OldSender.response(.shutdown, 1) && connection.isFinished)
  }

  @Test("silence is no reason to close while confirms are awaited")
  func idleWhileWaiting() {
    say(OldSender.framed(1))
    driver.checkDeadline(at: connection.deadline)
    #expect(!connection.isFinished)
    desk.settleAll()
    driver.checkDeadline(at: connection.deadline)
    #expect(connection.isFinished)
  }

  @Test("a handshake that fails leaves nothing behind")
  func refusedHandshake() {
    let other = BinaryConnection(desk) { _ in nil }
    MachineDriver(other).finish(.handshakeFailed("no certificate"), at: start)
    #expect(desk.finishedCount == 1)
  }
}
