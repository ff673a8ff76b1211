import HTTP2
import PushCore
import Reactor
import Testing
import Wire

@testable import Providers

/// Two applications with one key: their pool, its provider and a caller.
private final class SharedBench: PoolHandler, PoolObserver {
  static let topics = ["com.example.a", "com.example.b"]

  let world = VirtualWorld()
  let provider = ScriptedProvider()
  let apns: APNsProvider
  let pool: ProviderPool
  let accounts: [PoolAccount]
  private(set) var waiting: [[Int]] = [[], []]
  private(set) var delivered = [0, 0]
  private(set) var refused = [0, 0]
  private(set) var events: [String] = []
  private var apps: [Int: Int] = [:]

  init() throws {
    let target = DialTarget(Endpoint(host: "apns.test", port: 443), tls: nil)
    apns = APNsProvider(
      APNsCredentials(authentication: .token(try TestKeys.tokenCredential()), target: target), time: world.time)
    pool = ProviderPool(.apns(apns), settings: .apns, time: world.time, dialer: world)
    accounts = Self.topics.map(pool.openAccount)
    pool.handler = self
    pool.observer = self
    world.answerDial = { [provider] _ in .accept(provider.accept()) }
  }

  func offer(_ app: Int, _ tags: some Sequence<Int>) {
    waiting[app] += tags
    pump()
  }

  private func pump() {
    for app in 0...1 {
      while !waiting[app].isEmpty, accounts[app].capacity > 0 {
        let tag = waiting[app].removeFirst()
        apps[tag] = app
        apns.send(APNsBench.push(tag, topic: Self.topics[app]), for: accounts[app], tag: tag)
      }
      if !waiting[app].isEmpty { accounts[app].wantsCapacity() }
    }
  }

  private func app(of tag: Int) -> Int { apps[tag] ?? 0 }

  func answered(tag: Int, meaning: ReplyMeaning, name: [UInt8]?, from pool: ProviderPool) {
    if meaning.reaction == .delivered { delivered[app(of: tag)] += 1 } else { refused[app(of: tag)] += 1 }
  }
  func notSent(tag: Int, why: NotSentReason, from pool: ProviderPool) { waiting[app(of: tag)].append(tag) }
  func unknown(tag: Int, reason: String, from pool: ProviderPool) {}
  func isWanted(tag: Int) -> Bool { true }
  func capacityAvailable(in pool: ProviderPool) { pump() }
  func observed(_ event: PoolEvent, of name: String, from pool: ProviderPool) {
    switch event {
    case .credentialStopped(let reason, _, _): events.append("\(name): \(reason)")
    case .credentialAccepted: events.append("\(name): accepted")
    default: break
    }
  }

  func asked(_ topic: String) -> Int { provider.requests.count { $0.header("apns-topic") == topic } }
}

@Suite("A pool of several applications")
struct SharedPoolTests {
  private static let (a, b) = (0, 1)
  private static let disallowed = ScriptedProvider.Answer.status(400, #"{"reason":"TopicDisallowed"}"#)

  @Test("has one connection and one token for all, and counts the pushes of each")
  func shared() throws {
    let bench = try SharedBench()
    bench.offer(Self.a, 0..<20)
    bench.offer(Self.b, 100..<130)
    bench.world.settle()
    #expect(bench.delivered == [20, 30])
    bench.provider.answer = { _ in .stall }
    bench.offer(Self.a, 200..<203)
    bench.offer(Self.b, 300..<307)
    bench.world.settle()
    #expect(bench.accounts.map(\.inFlight) == [3, 7] && bench.pool.inFlight == 10)
    #expect(bench.accounts.map(\.expected) == [3, 7])
    #expect(bench.world.connections.count == 1 && Set(bench.provider.requests.map(\.authorization)).count == 1)
    // After a silence no answer to these is expected any more.
    bench.provider.answer = { _ in .status(200) }
    bench.world.advance(by: 6)
    #expect(bench.accounts.map(\.inFlight) == [3, 7] && bench.accounts.map(\.expected) == [0, 0])
  }

  @Test("a refused topic stops its own application, which is asked for by itself")
  func refusedTopic() throws {
    let bench = try SharedBench()
    bench.provider.answer = { $0.header("apns-topic") == SharedBench.topics[Self.b] ? Self.disallowed : .status(200) }
    bench.offer(Self.b, 100..<130)
    bench.offer(Self.a, 0..<200)
    bench.world.settle()
    bench.world.advance(by: 10)
    #expect(bench.delivered == [200, 0] && bench.refused == [0, 0] && bench.waiting[Self.b].count == 30)
    #expect(bench.accounts[Self.b].state == .stopped(reason: "TopicDisallowed") && bench.accounts[Self.a].state == .open)
    #expect(bench.accounts.map { $0.isInTrouble(at: bench.world.now) } == [false, true])
    #expect(
      bench.accounts.map(\.isCredentialRefused) == [false, true] && bench.accounts[Self.b].refusalCode == .invalidPackageName)
    #expect(bench.events == ["com.example.b: TopicDisallowed"])
    let before = bench.asked(SharedBench.topics[Self.b])
    #expect(before < 5)
    bench.world.advance(by: 175)
    #expect((2...3).contains(bench.asked(SharedBench.topics[Self.b]) - before))
    bench.offer(Self.a, 200..<210)
    bench.provider.answer = {
      $0.path.contains("/0123456789abcdef") ? .status(400, #"{"reason":"BadDeviceToken"}"#) : .status(200)
    }
    bench.world.advance(by: 65)
    #expect(bench.delivered == [210, 30] && bench.accounts[Self.b].state == .open)
    #expect(bench.events.last == "com.example.b: accepted")
    #expect(Set(bench.provider.requests.filter { !$0.path.contains("/0123456789abcdef") }.map(\.connection)).count == 1)
  }

  @Test("a refused credential is asked for with the refused topic, also when its application has left")
  func refusedThenLeft() throws {
    let bench = try SharedBench()
    bench.provider.answer = { _ in .status(403, #"{"reason":"InvalidProviderToken"}"#) }
    bench.offer(Self.a, 0..<1)
    bench.world.advance(by: 5)
    bench.pool.close(bench.accounts[Self.a])
    bench.offer(Self.b, 100..<110)
    let before = bench.provider.requests.count
    bench.world.advance(by: 125)
    let asked = bench.provider.requests.dropFirst(before).map { $0.header("apns-topic") }
    #expect(!asked.isEmpty && asked.allSatisfy { $0 == SharedBench.topics[Self.a] }, "\(asked)")
  }

  @Test("a refused credential stops all, and is asked for once")
  func refusedCredential() throws {
    let bench = try SharedBench()
    bench.provider.answer = { _ in .status(403, #"{"reason":"InvalidProviderToken"}"#) }
    bench.offer(Self.a, 0..<10)
    bench.offer(Self.b, 100..<110)
    bench.world.advance(by: 5)
    #expect(bench.accounts.allSatisfy { $0.state == .stopped(reason: "InvalidProviderToken") })
    #expect(bench.events == ["com.example.a: InvalidProviderToken"])
    let before = bench.provider.requests.count
    bench.world.advance(by: 125)
    #expect((1...2).contains(bench.provider.requests.count - before))
    bench.provider.answer = { _ in .status(200) }
    bench.world.advance(by: 65)
    #expect(bench.delivered == [10, 10])
  }

  @Test("a topic that was refused goes by another credential as soon as there is one")
  func replaced() throws {
    let bench = try SharedBench()
    bench.provider.answer = { $0.header("apns-topic") == SharedBench.topics[Self.b] ? Self.disallowed : .status(200) }
    bench.offer(Self.b, 100..<103)
    bench.world.advance(by: 1)
    bench.offer(Self.b, [])
    #expect(bench.accounts[Self.b].state == .stopped(reason: "TopicDisallowed"))
    bench.provider.answer = { _ in .status(200) }
    bench.apns.replaceCredentials(
      APNsCredentials(
        authentication: .token(try TestKeys.tokenCredential()),
        target: DialTarget(Endpoint(host: "apns.test", port: 443), tls: nil)))
    bench.world.advance(by: 1)
    #expect(bench.delivered == [0, 3])
  }

  @Test("a closed account's number is another's when nothing is left of it in flight")
  func closed() throws {
    let bench = try SharedBench()
    bench.offer(Self.b, [100])
    bench.world.settle()
    bench.provider.answer = { _ in .stall }
    bench.offer(Self.b, [101])
    bench.world.settle()
    bench.pool.close(bench.accounts[Self.b])
    #expect(bench.pool.openAccount("c").number == 2 && bench.pool.openAccounts == 2)
    bench.pool.close(bench.accounts[Self.a])
    #expect(bench.pool.openAccount("d").number == 0 && bench.pool.name == "d")
  }
}
