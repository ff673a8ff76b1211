import HTTP2
import PushCore
import TestSupport
import Testing
import Wire

@testable import Providers

@Suite("An APNs pool's connections")
struct APNsPoolTests {
  @Test("connects only when something is to be sent, and then delivers")
  func lazily() throws {
    let bench = try APNsBench()
    bench.world.advance(by: 60)
    #expect(bench.world.connections.isEmpty)
    #expect(bench.pool.state == .idle)
    bench.offer(0..<10)
    bench.world.settle()
    #expect(bench.delivered == 10)
    #expect(bench.world.connections.count == 1)
    #expect(bench.pool.state == .open)
  }

  @Test("a push carries the headers of the provider API")
  func headers() throws {
    let bench = try APNsBench()
    bench.warmUp()
    let request = try #require(bench.provider.requests.first)
    #expect(request.path == "/3/device/" + APNsBench.device(-1))
    #expect(request.header(":method") == "POST")
    #expect(request.header(":scheme") == "https")
    #expect(request.header(":authority") == "apns.test")
    #expect(request.header("apns-topic") == "com.example.app")
    #expect(request.header("apns-push-type") == "alert")
    #expect(request.header("apns-priority") == "10")
    #expect(request.header("apns-expiration") == "0")
    #expect(request.header("apns-collapse-id") == nil)
    #expect(request.header("apns-id") == "00000000-0000-5000-8000-000000000000")
    #expect(request.authorization.hasPrefix("bearer eyJ"))
    #expect(String(decoding: request.body, as: UTF8.self) == "{\"aps\":{\"alert\":\"-1\"}}")
  }

  @Test("with a token, one push goes first and the others wait for its answer")
  func probe() throws {
    let bench = try APNsBench()
    bench.provider.answer = { _ in .stall }
    bench.offer(0..<50)
    bench.world.settle()
    #expect(bench.provider.requests.count == 1)
    #expect(bench.pool.state == .probing)
    #expect(bench.pool.capacity == 0)
    bench.provider.answer = { _ in .status(200) }
    bench.provider.give(.status(400, #"{"reason":"BadDeviceToken"}"#), to: bench.provider.requests[0])
    bench.world.settle()
    #expect(bench.provider.requests.count == 50)
    #expect(bench.delivered == 49)
    #expect(bench.pool.state == .open)
  }

  @Test("with a certificate there is no probe and no authorization")
  func certificate() throws {
    let bench = try APNsBench(certificate: true)
    bench.provider.answer = { _ in .stall }
    bench.offer(0..<50)
    bench.world.settle()
    #expect(bench.provider.requests.count == 50)
    #expect(bench.provider.requests.allSatisfy { $0.authorization.isEmpty })
  }

  @Test("GOAWAY amid open streams: those above its last id go again, each device is reached exactly once")
  func goAwayMidStream() throws {
    let bench = try APNsBench()
    bench.warmUp()
    bench.provider.answer = { _ in .stall }
    bench.offer(0..<60)
    bench.world.settle()
    let held = bench.provider.requests.filter { $0.stream > 1 }
    #expect(held.count == 60)
    bench.provider.answer = { _ in .status(200) }
    bench.provider.sessions[0].goAway(
      lastStreamID: held[29].stream, debugData: Array(#"{"reason":"Shutdown"}"#.utf8))
    bench.world.settle()
    #expect(bench.world.connections.count == 2)
    for request in held[...29] { bench.provider.give(.status(200), to: request) }
    bench.world.settle()
    #expect(bench.delivered == 61)
    #expect(bench.notSent.isEmpty && bench.unknown.isEmpty)
    #expect(bench.provider.delivered.count == 61)
    #expect(Set(bench.provider.delivered).count == 61)
    #expect(bench.events.contains { if case .goAway(let reason) = $0 { reason.contains("Shutdown") } else { false } })
  }

  @Test("GOAWAY twice, the second with the real id, loses and doubles nothing")
  func goAwayTwice() throws {
    let bench = try APNsBench()
    bench.warmUp()
    bench.provider.answer = { _ in .stall }
    bench.offer(0..<10)
    bench.world.settle()
    let held = bench.provider.requests.filter { $0.stream > 1 }
    bench.provider.answer = { _ in .status(200) }
    bench.provider.sessions[0].goAway(lastStreamID: .max)
    bench.world.settle()
    bench.provider.sessions[0].goAway(lastStreamID: held[4].stream)
    bench.world.settle()
    for request in held[...4] { bench.provider.give(.status(200), to: request) }
    bench.world.settle()
    #expect(bench.provider.delivered.count == 11)
    #expect(Set(bench.provider.delivered).count == 11)
    #expect(bench.delivered == 11)
  }

  @Test("GOAWAY and the end at once: what may have been processed is unknown, the rest goes again")
  func goAwayAndEnd() throws {
    let bench = try APNsBench()
    bench.warmUp()
    bench.provider.answer = { _ in .stall }
    bench.offer(0..<10)
    bench.world.settle()
    let held = bench.provider.requests.filter { $0.stream > 1 }
    bench.provider.answer = { _ in .status(200) }
    bench.provider.sessions[0].goAway(lastStreamID: held[4].stream)
    bench.world.settle()
    bench.world.cut(bench.world.connections[0])
    #expect(bench.unknown.count == 5)
    #expect(bench.delivered == 6)
  }

  @Test("every third stream refused: each push arrives once, or is given back after three refusals")
  func refused() throws {
    let bench = try APNsBench()
    bench.warmUp()
    var count = 0
    bench.provider.answer = { _ in
      count += 1
      return count.isMultiple(of: 3) ? .refuse : .status(200)
    }
    bench.offer(0..<300)
    bench.world.settle()
    #expect(bench.delivered + bench.notSent.count == 301)
    #expect(bench.notSent.allSatisfy { $0.why == .refused })
    #expect(bench.notSent.count < 30)
    #expect(Set(bench.provider.delivered).count == bench.provider.delivered.count)
  }

  @Test("a push refused for ever is given back after the third time")
  func refusedForEver() throws {
    let bench = try APNsBench()
    bench.warmUp()
    bench.provider.answer = { _ in .refuse }
    bench.offer([7])
    bench.world.settle()
    #expect(bench.notSent.map(\.tag) == [7])
    #expect(bench.provider.requests.count == 1 + 3)
  }

  @Test("the server's stream limit is followed down to 1 and 0 and up again")
  func settings() throws {
    let bench = try APNsBench()
    bench.warmUp()
    bench.provider.answer = { _ in .stall }
    bench.provider.sessions[0].setMaxConcurrentStreams(0)
    bench.world.settle()
    bench.offer(0..<20)
    bench.world.settle()
    #expect(bench.provider.requests.count == 1)
    #expect(bench.pool.capacity == 0)
    bench.provider.sessions[0].setMaxConcurrentStreams(1)
    bench.world.settle()
    #expect(bench.provider.requests.count == 2)
    bench.provider.sessions[0].setMaxConcurrentStreams(1000)
    bench.world.settle()
    #expect(bench.provider.requests.count == 21)
    #expect(bench.provider.violations.isEmpty)
  }

  @Test("failing to connect backs off up to 1.5 s, and the first answer ends that")
  func backOff() throws {
    let bench = try APNsBench()
    bench.world.answerDial = { _ in .fail(.handshakeFailed("certificate has expired")) }
    bench.offer([1])
    bench.world.advance(by: 600)
    let dials = bench.world.connections.map(\.dialledAt)
    let gaps = zip(dials.dropFirst(), dials).map { $0.seconds(since: $1) }
    #expect((400...800).contains(gaps.count))
    #expect(gaps[0] <= 0.51 && gaps[0] >= 0.24)
    #expect(gaps.suffix(5).allSatisfy { (0.75...1.6).contains($0) })
    if case .backingOff(let reason) = bench.pool.state {
      #expect(reason.contains("certificate has expired"))
    } else {
      Issue.record("not backing off")
    }
    bench.world.answerDial = { [provider = bench.provider] _ in .accept(provider.accept()) }
    bench.world.advance(by: 61)
    #expect(bench.delivered == 1)
  }

  @Test("a server that closes before it served anything is backed off from")
  func closesAtOnce() throws {
    let bench = try APNsBench()
    bench.provider.answer = { [bench] _ in
      bench.provider.sessions.last?.goAway(lastStreamID: 0)
      return .stall
    }
    bench.offer([1])
    bench.world.advance(by: 120)
    #expect(bench.world.connections.count < 12)
    bench.provider.answer = { _ in .status(200) }
    #expect(bench.notSent.count == 1)
  }

  @Test("a request that is never answered is unknown after its time, and the others go on")
  func stalls() throws {
    let bench = try APNsBench()
    bench.warmUp()
    bench.provider.answer = { $0.device == APNsBench.device(3) ? .stall : .status(200) }
    bench.offer(0..<10)
    bench.world.advance(by: 29)
    #expect(bench.delivered == 10)
    #expect(bench.unknown.isEmpty)
    bench.world.advance(by: 2)
    #expect(bench.unknown.map(\.tag) == [3])
    #expect(bench.world.openConnections.count == 1)
    bench.offer([20])
    bench.world.settle()
    #expect(bench.delivered == 11)
  }

  @Test("a server that accepts and then says nothing is given up and backed off from")
  func hangs() throws {
    let bench = try APNsBench()
    bench.world.answerDial = { _ in .hang }
    bench.offer([1])
    bench.world.advance(by: 120)
    #expect((5...12).contains(bench.world.connections.count))
    #expect(bench.world.openConnections.count <= 1)
    bench.world.answerDial = { [provider = bench.provider] _ in .accept(provider.accept()) }
    bench.world.advance(by: 60)
    #expect(bench.delivered == 1)
  }

  @Test("a half-open connection is found out within 30 s, and what comes after goes over a new one")
  func halfOpen() throws {
    var settings = PoolSettings.apns
    settings.requestTimeout = 300
    let bench = try APNsBench(settings: settings)
    bench.warmUp()
    bench.world.connections[0].isDead = true
    bench.offer([1])
    bench.world.advance(by: 30)
    #expect(bench.unknown.map(\.tag) == [1])
    bench.offer([2])
    bench.world.settle()
    #expect(bench.delivered == 2)
    // And one that has asked whether the provider answers.
    #expect(bench.world.connections.count == 3)
  }

  @Test("a connection that the server closed when idle is made anew for the next push, without back-off")
  func idleClose() throws {
    let bench = try APNsBench()
    bench.warmUp()
    bench.provider.sessions[0].goAway(lastStreamID: .max)
    bench.world.settle()
    bench.world.cut(bench.world.connections[0], .closedByPeer)
    bench.world.advance(by: 3600)
    bench.offer([1])
    bench.world.settle()
    #expect(bench.delivered == 2)
    #expect(bench.world.connections.count == 2)
  }

  @Test("a server that says goodbye after each push is not connected to more than six times in ten seconds")
  func noConnectStorm() throws {
    let bench = try APNsBench()
    bench.sendsAgain = true
    bench.provider.answer = { [bench] request in
      bench.provider.sessions[request.connection].goAway(lastStreamID: request.stream)
      return .status(200)
    }
    bench.offer(0..<100)
    bench.world.advance(by: 30)
    #expect(bench.world.connections.count <= 24)
    #expect(bench.delivered >= 12)
  }

  @Test("a server that ends each connection after a thousand pushes is followed without a pause")
  func rotation() throws {
    let bench = try APNsBench()
    bench.provider.answer = { [bench] request in
      if request.stream == 1999 { bench.provider.sessions[request.connection].goAway(lastStreamID: 1999) }
      return request.stream > 1999 ? .stall : .status(200)
    }
    bench.offer(0..<9500)
    bench.world.settle()
    #expect(bench.delivered == 9500)
    #expect(bench.world.connections.count == 10)
    #expect(Set(bench.provider.delivered).count == 9500)
    #expect(bench.provider.delivered.count == 9500)
  }

  @Test("connections that the server ends every thirty seconds cost nothing but their making")
  func shortLives() throws {
    let bench = try APNsBench()
    for round in 0..<20 {
      bench.offer(round * 200..<round * 200 + 100)
      bench.world.advance(by: 30)
      bench.offer(round * 200 + 100..<round * 200 + 200)
      bench.provider.sessions.last?.goAway(lastStreamID: bench.provider.requests.last?.stream ?? 0)
      bench.world.settle()
    }
    bench.world.advance(by: 5)
    #expect(bench.delivered == 4000 && bench.provider.requests.count == 4000)
    #expect(bench.unknown.isEmpty && bench.notSent.isEmpty)
    #expect((20...21).contains(bench.world.connections.count))
    #expect(!bench.events.contains { if case .backingOff = $0 { true } else { false } })
  }

  @Test("a tenth of the answers being failures costs a tenth more requests, and no pause")
  func amplification() throws {
    let bench = try APNsBench()
    var generator = SeededGenerator(seed: 7)
    bench.provider.answer = { _ in
      Int.random(in: 0..<10, using: &generator) == 0 ? .status(500, #"{"reason":"InternalServerError"}"#) : .status(200)
    }
    var round = Array(0..<5000)
    while !round.isEmpty {
      bench.offer(round)
      bench.world.advance(by: 60)
      // The caller's next attempt has another tag.
      round = round.filter { bench.answers[$0]?.reaction != .delivered }.map { $0 + 10_000 }
    }
    #expect(bench.delivered == 5000)
    #expect(bench.provider.requests.count < 5000 * 12 / 10)
    #expect(!bench.events.contains { if case .paused = $0 { true } else { false } })
  }

  @Test("an outage of the provider leaves only probes, then traffic comes back")
  func outage() throws {
    let bench = try APNsBench()
    bench.warmUp()
    bench.provider.answer = { _ in .status(503, #"{"reason":"ServiceUnavailable"}"#) }
    bench.offer(0..<10_000)
    bench.world.advance(by: 600)
    #expect(bench.provider.requests.count < 900)
    let before = bench.answers.count
    bench.provider.answer = { _ in .status(200) }
    bench.world.advance(by: 70)
    #expect(bench.answers.count == 10_001)
    #expect(bench.delivered == 10_001 - before + 1)
  }

  @Test("Retry-After makes the whole pool wait")
  func retryAfter() throws {
    let bench = try APNsBench()
    bench.warmUp()
    bench.provider.answer = { _ in .status(503, #"{"reason":"ServiceUnavailable"}"#, [("retry-after", "20")]) }
    bench.offer([1])
    bench.world.settle()
    bench.provider.answer = { _ in .status(200) }
    bench.offer(2..<10)
    bench.world.advance(by: 19)
    #expect(bench.delivered == 1)
    bench.world.advance(by: 4)
    #expect(bench.delivered == 9)
  }

  @Test("TooManyRequests slows nobody else")
  func perDevice() throws {
    let bench = try APNsBench()
    bench.warmUp()
    bench.provider.answer = { $0.device.hasSuffix("7") ? .status(429, #"{"reason":"TooManyRequests"}"#) : .status(200) }
    bench.offer(0..<100)
    bench.world.settle()
    #expect(bench.answers.count == 101)
    #expect(bench.delivered == 91)
  }

  @Test("shutting down reports everything in flight")
  func shutsDown() throws {
    let bench = try APNsBench()
    bench.warmUp()
    bench.provider.answer = { _ in .stall }
    bench.offer(0..<5)
    bench.world.settle()
    bench.pool.shutdown()
    bench.world.settle()
    #expect(bench.unknown.count == 5)
    #expect(bench.pool.inFlight == 0)
    #expect(bench.pool.state == .closed)
  }

  @Test("several connections share the load when one is full, and the surplus goes when idle")
  func severalConnections() throws {
    var settings = PoolSettings.apns
    settings.connections = 3
    let bench = try APNsBench(certificate: true, settings: settings)
    bench.provider.streamLimit = 10
    bench.provider.answer = { _ in .stall }
    bench.offer(0..<25)
    bench.world.settle()
    #expect(bench.provider.requests.count == 25)
    #expect(bench.world.openConnections.count == 3)
    for request in bench.provider.requests { bench.provider.give(.status(200), to: request) }
    bench.world.advance(by: 200)
    #expect(bench.world.openConnections.count == 1)
    #expect(bench.delivered == 25)
  }

  @Test("the last connection is kept for an hour without a push, closed then, and made anew for the next")
  func lastConnection() throws {
    let bench = try APNsBench()
    bench.warmUp()
    bench.world.advance(by: 3000)
    bench.offer([0])
    bench.world.advance(by: 3500)
    #expect(bench.world.openConnections.count == 1 && bench.world.connections.count == 1)
    bench.world.advance(by: 200)
    #expect(bench.world.openConnections.isEmpty && bench.pool.state == .idle)
    bench.offer([1])
    bench.world.settle()
    #expect(bench.delivered == 3 && bench.world.connections.count == 2)
  }

  @Test("a connection whose window never opens costs one push its time, and the others go over a new one")
  func windowShut() throws {
    let bench = try APNsBench(certificate: true)
    bench.world.answerDial = { [provider = bench.provider] _ in
      var configuration = ServerConfiguration()
      configuration.updatesWindows = bench.world.connections.count > 1
      return .accept(ServerSession(configuration: configuration, handler: provider))
    }
    bench.offer(0..<4_000)
    bench.world.advance(by: 35)
    #expect(bench.unknown.count == 1 && bench.delivered == 3_999)
  }
}
