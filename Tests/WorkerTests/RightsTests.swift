import AMQP
import DeviceRegistry
import Logging
import PushCore
import Reactor
import Testing
import Wire

@testable import Broker
@testable import Delivery
@testable import Worker

@Suite("The rights of producers")
struct RightsTests {
  private let loop: EventLoop
  private let outbox: Outbox
  private let pipeline: Pipeline

  /// An application of two producers without a credential: an allowed request ends because of that.
  init() throws {
    loop = try EventLoop()
    outbox = Outbox(time: loop.time, log: Log(level: .error))
    let apps = Applications(Array("com.example.app".utf8), rights: Self.rights)
    pipeline = Pipeline(apps: apps, outbox: outbox, time: loop.time)
  }

  private static var rights: AppRights {
    AppRights(
      producers: [Array("billing".utf8), Array("chat".utf8)],
      topics: [Array("com.example.app".utf8), Array("com.example.app.voip".utf8), Array("com.example.other".utf8)])
  }

  private static let token = String(repeating: "a", count: 64)
  private static let request = #"{"to":"\#(token)","data":{"k":"v"}}"#

  private func delivery(
    _ user: String?, by exchange: String = "push.send", _ body: String = request, _ headers: FieldTable = [:]
  )
    -> Delivery
  {
    var delivery = Delivery()
    delivery.exchange = Array(exchange.utf8)
    delivery.properties.userID = user.map { Array($0.utf8) }
    delivery.properties.messageID = Array("m".utf8)
    delivery.properties.headers = headers
    delivery.body = Array(body.utf8)
    delivery.bodySize = UInt64(delivery.body.count)
    return delivery
  }

  /// The messages that follow from a delivery, all confirmed.
  private func consequences(of delivery: Delivery, from queue: WorkQueue = .sendNormal, isAlone: Bool = false) -> [Publication]
  {
    pipeline.accept(delivery, from: queue, isAlone: isAlone)
    return takeAll()
  }

  private func takeAll() -> [Publication] {
    var all: [Publication] = []
    while let slot = outbox.slots.indices.first, let publication = outbox.slots[slot] {
      all.append(publication)
      outbox.confirmed(slot)
    }
    return all
  }

  private func text(_ name: String, _ publication: Publication?) -> String? {
    publication?.properties.headers.string(name).map { String(decoding: $0, as: UTF8.self) }
  }

  /// The code of a delivery's dead letter.
  private func end(_ delivery: Delivery, from queue: WorkQueue = .sendNormal) -> String? {
    text("x-push-error", consequences(of: delivery, from: queue).first { $0.kind == .deadLetter })
  }

  /// A worker's copy that comes back by one of the fleet's exchanges.
  private func back(_ publication: Publication, by exchange: String) -> Delivery {
    var delivery = Delivery()
    delivery.exchange = Array(exchange.utf8)
    delivery.properties = publication.properties
    delivery.body = publication.body
    delivery.bodySize = UInt64(publication.body.count)
    return delivery
  }

  private let allowed = "MismatchSenderId"

  @Test("a producer that isn't listed, or has no name, is refused; a listed one isn't")
  func producers() {
    #expect(end(delivery("billing")) == allowed && end(delivery("chat", by: "")) == allowed)
    for user in [nil, "", "Billing", "billing2", "guest"] {
      let letter = consequences(of: delivery(user)).first
      #expect(text("x-push-error", letter) == "NotAllowed" && letter?.kind == .deadLetter, "\(user ?? "nobody")")
      #expect(text("x-push-producer", letter) == user ?? "")
      #expect(letter?.properties.userID == nil)
    }
    #expect(pipeline.table.count == 0)
  }

  @Test("no header of a producer replaces the broker's user name, on any queue")
  func forged() {
    let headers: FieldTable = [
      "x-push-producer": .text("billing"), "x-push-retry-attempts": .integer(1), "x-push-retry-deadline": .integer(.max),
      "x-push-origin": .text("send.normal"),
    ]
    for exchange in ["push.send", "", "push.events", "push.dead", "mine", "push.return2"] {
      #expect(end(delivery("mallory", by: exchange, Self.request, headers)) == "NotAllowed", "\(exchange)")
      #expect(end(delivery(nil, by: exchange, Self.request, headers), from: .sendHigh) == "NotAllowed", "\(exchange)")
    }
    #expect(end(delivery("mallory", by: "push.fanout", Self.request, headers)) == "NotAllowed")
  }

  @Test("a worker's own copy is allowed, stays allowed, and names no producer")
  func sentOn() throws {
    pipeline.accept(delivery("billing"), from: .sendNormal)
    _ = takeAll()
    let entry = InFlight(index: 0)
    entry.delivery = delivery("billing", by: "push.send", Self.request, ["x-push-producer": .text("mallory")])
    let record = RetryRecord(
      attempts: 1, round: 1, deadline: .max, error: .unavailable, reason: "", status: nil, settled: nil)
    let publications = pipeline.tools.publications
    var random = RandomSource()
    let ticket = PageTicket(campaign: [1], number: 0, after: 0, upTo: 9, deadline: .max, using: &random)
    for (copy, exchange, queue) in [
      (
        publications.retry(record, by: RetryStep(name: "1s", delay: 1_000), at: 0, for: entry), "push.return",
        WorkQueue.sendNormal
      ),
      (publications.hold(record, of: 0, at: 0, for: entry), "push.hold", .sendNormal),
      (publications.again(for: entry), "push.return", .sendNormal),
      (publications.page(ticket, for: entry), "push.fanout", .fanoutNormal),
    ] {
      #expect(copy.properties.userID == nil && copy.properties.headers["x-push-producer"] == nil, "\(exchange)")
      #expect(end(back(copy, by: exchange), from: queue) != "NotAllowed", "\(exchange)")
    }
  }

  @Test("a producer's choices in headers, and the time of first sight, stay with the request everywhere")
  func choices() throws {
    let entry = InFlight(index: 0)
    entry.delivery = delivery(
      "billing", by: "push.send", Self.request,
      ["x-push-sender": .text("42"), "x-push-environment": .text("sandbox"), "x-push-first-seen": .integer(5)])
    entry.identity.published = 1_795_209_720_123
    let record = RetryRecord(
      attempts: 1, round: 1, deadline: .max, error: .unavailable, reason: "", status: nil, settled: nil)
    let publications = pipeline.tools.publications
    var random = RandomSource()
    let ticket = PageTicket(campaign: [1], number: 0, after: 0, upTo: 9, deadline: .max, using: &random)
    let letter = publications.deadLetter(DeadLetter(error: .unavailable, reason: "", attempts: 1, failedAt: 0), for: entry)
    let copies = [
      publications.retry(record, by: RetryStep(name: "1s", delay: 1_000), at: 0, for: entry),
      publications.hold(record, of: 0, at: 0, for: entry), publications.page(ticket, for: entry),
    ]
    for copy in copies + [letter] {
      #expect(copy.properties.headers.string("x-push-sender") == Array("42".utf8))
      #expect(copy.properties.headers.string("x-push-environment") == Array("sandbox".utf8))
    }
    for copy in copies { #expect(copy.properties.headers["x-push-first-seen"] == .integer(entry.identity.published)) }
    // A replayed request's lifetime begins again.
    #expect(letter.properties.headers["x-push-first-seen"] == nil)
    entry.delivery.properties.timestamp = 1_795_209_720
    let dated = publications.hold(record, of: 0, at: 0, for: entry)
    #expect(dated.properties.headers["x-push-first-seen"] == nil && dated.properties.timestamp == 1_795_209_720)
  }

  @Test("a worker's copy is for the application that was found, even if the configuration changes")
  func resolved() throws {
    let app = Array("com.example.app".utf8)
    let entry = InFlight(index: 0)
    entry.delivery = delivery("billing")
    entry.identity.app = 0
    let record = RetryRecord(
      attempts: 1, round: 1, deadline: .max, error: .unavailable, reason: "", status: nil, settled: nil)
    let letter = DeadLetter(error: .unavailable, reason: "", attempts: 1, failedAt: 0)
    let publications = pipeline.tools.publications
    let copies = [
      (publications.retry(record, by: RetryStep(name: "1s", delay: 1_000), at: 0, for: entry), "push.return"),
      (publications.hold(record, of: 0, at: 0, for: entry), "push.hold"),
      (publications.again(for: entry), "push.return"),
      (publications.deadLetter(letter, for: entry), "push.return"),
    ]
    pipeline.apps.put(Array("com.example.another".utf8), packages: [], senders: [])
    for (copy, exchange) in copies {
      #expect(copy.properties.appID == app)
      let letter = consequences(of: back(copy, by: exchange)).first
      #expect(text("x-push-error", letter) == allowed && letter?.properties.appID == app)
    }
    pipeline.apps.remove(0)
    for (copy, exchange) in copies { #expect(end(back(copy, by: exchange)) == "InvalidParameters") }
  }

  @Test("the same broadcast of two producers in one second is two broadcasts; a redelivery of either is the same one")
  func broadcasts() throws {
    let log = Log(level: .error)
    let registry = try RegistryClient(
      .sqlite(path: "/proc/nowhere/registry.db"), limits: RegistryLimits(), host: loop, log: log)
    let outbox = Outbox(time: loop.time, log: log)
    let apps = Applications(Array("com.example.app".utf8))
    let pipeline = Pipeline(apps: apps, outbox: outbox, time: loop.time, registry: registry)
    func name(_ delivery: Delivery) throws -> [UInt8]? {
      pipeline.accept(delivery, from: .sendNormal)
      let slot = try #require(outbox.slots.indices.first)
      defer { outbox.confirmed(slot) }
      return outbox.slots[slot]?.properties.messageID
    }
    let now = UInt64(loop.wallClock / 1000)
    func broadcast(_ user: String) -> Delivery {
      var broadcast = delivery(user, by: "push.send", #"{"to":"/topics/news"}"#)
      broadcast.properties.messageID = nil
      broadcast.properties.timestamp = now
      return broadcast
    }
    let billing = try name(broadcast("billing"))
    #expect(try name(broadcast("chat")) != billing)
    #expect(try name(broadcast("billing")) == billing)
    // It has been in the quarantine.
    var returned = broadcast("billing")
    returned.exchange = Array("push.retry".utf8)
    returned.properties.userID = nil
    returned.properties.headers.append("x-push-producer", .text("billing"))
    #expect(try name(returned) == billing)
  }

  @Test("a message that was put aside unchecked is checked when it comes back, for its publisher")
  func quarantined() throws {
    for (user, code) in [("billing", allowed), ("mallory", "NotAllowed"), (nil, "NotAllowed")] {
      var suspect = delivery(user, by: "push.send", Self.request, ["x-push-producer": .text("billing")])
      suspect.redelivered = true
      suspect.properties.headers.append("x-delivery-count", .integer(2))
      let copy = try #require(consequences(of: suspect).first)
      #expect(String(decoding: copy.routingKey, as: UTF8.self) == "quarantine")
      #expect(text("x-push-producer", copy) == user ?? "" && copy.properties.userID == nil)
      let again = back(copy, by: "push.retry")
      #expect(text("x-push-error", consequences(of: again, isAlone: true).first) == code, "\(user ?? "nobody")")
    }
  }

  @Test("a replayed dead letter is checked again only if no producer was found to be allowed")
  func replayed() throws {
    let refused = try #require(consequences(of: delivery("mallory")).first)
    #expect(end(back(refused, by: "push.return")) == "NotAllowed")
    let unread = try #require(consequences(of: delivery("mallory", by: "push.send", "no JSON")).first)
    #expect(text("x-push-error", unread) == "InvalidJSON" && text("x-push-producer", unread) == "mallory")
    let failed = try #require(consequences(of: delivery("billing")).first)
    #expect(failed.properties.headers["x-push-producer"] == nil)

    var rights = Self.rights
    rights.producers = [Array("mallory".utf8)]
    pipeline.apps.put(Array("com.example.app".utf8), packages: [], rights: rights, senders: [])
    #expect(end(back(refused, by: "push.return")) == allowed)
    #expect(end(back(failed, by: "push.return")) == allowed)
    #expect(end(delivery("billing")) == "NotAllowed")
  }

  @Test("a topic must be the application's, in a push type's form, or listed; otherwise nothing is sent")
  func topics() {
    func request(_ topic: String, isV1: Bool = false) -> String {
      let apns = #""apns":{"headers":{"apns-topic":"\#(topic)"}}"#
      return isV1
        ? #"{"message":{"token":"\#(Self.token)",\#(apns)}}"# : #"{"registration_ids":["\#(Self.token)","fcm:x"],\#(apns)}"#
    }
    for isV1 in [false, true] {
      for topic in ["com.example.app", "com.example.app.voip", "com.example.other"] {
        #expect(end(delivery("billing", by: "push.send", request(topic, isV1: isV1))) == allowed, "\(topic)")
      }
      for topic in ["com.example.app.complication", "com.example.other.voip", "com.example", "COM.EXAMPLE.APP"] {
        let all = consequences(of: delivery("billing", by: "push.send", request(topic, isV1: isV1)))
        #expect(all.count == 1 && text("x-push-error", all.first) == "NotAllowed", "\(topic)")
        #expect(end(back(all[0], by: "push.return")) == "NotAllowed")
      }
    }
  }

  @Test("without settings everything is allowed")
  func open() {
    pipeline.apps.put(Array("com.example.app".utf8), packages: [], rights: AppRights(), senders: [])
    #expect(end(delivery(nil)) == allowed && end(delivery("mallory")) == allowed)
    let body = #"{"to":"\#(Self.token)","apns":{"headers":{"apns-topic":"com.example.any"}}}"#
    #expect(end(delivery(nil, by: "push.send", body)) == allowed)
  }
}
