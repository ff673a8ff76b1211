import Logging
import PushCore
import Reactor
import TestSupport
import Testing

@testable import AMQP
@testable import Broker
@testable import Delivery

@Suite("Dead letters of a list's entries")
struct ListLetterTests {
  /// A worker's pipeline without a provider, between a test that delivers and one that confirms.
  private final class Bench: Acknowledger {
    let pipeline: Pipeline
    let outbox: Outbox
    var acknowledged = 0
    var isReadingPaused = false

    init() throws {
      let loop = try EventLoop()
      outbox = Outbox(time: loop.time, log: Log(level: .error))
      pipeline = Pipeline(
        apps: Applications(Array("a".utf8)), outbox: outbox,
        time: loop.time,
        results: .all)
      pipeline.backpressure.acknowledger = self
    }

    func acknowledge(_ token: DeliveryToken) { acknowledged += 1 }
    func adjustPrefetch(fitting: Int, ahead: Int) {}
    func takeLanes(_ takes: Bool) {}

    func deliver(_ body: String) {
      var delivery = Delivery()
      delivery.body = Array(body.utf8)
      delivery.bodySize = UInt64(delivery.body.count)
      pipeline.accept(delivery, from: .sendNormal)
    }

    /// Confirms publications one by one until none follows, and returns the messages sent for each.
    func confirmAll(_ body: (Publication.Kind, [UInt8]) -> Void) {
      while case let slots = outbox.slots.indices, !slots.isEmpty {
        for slot in slots {
          guard let publication = outbox.slots[slot] else { continue }
          body(publication.kind, pipeline.body(of: publication))
          outbox.confirmed(slot)
          pipeline.dispatchAll()
        }
      }
    }
  }

  private static let padding = String(repeating: "x", count: 480_000)

  private func request(_ entries: [String]) -> String {
    #"{"registration_ids":[\#(entries.map { "\"\($0)\"" }.joined(separator: ","))],"apns":{"payload":{"x":"\#(Self.padding)"}}}"#
  }

  @Test(
    "for ten lists of a thousand bad entries and half a megabyte: each entry has its letter, and few wait at a time, without bodies"
  )
  func many() throws {
    let bench = try Bench()
    let body = request((0..<1000).map { " \($0)" })
    for _ in 0..<10 { bench.deliver(body) }
    // The bodies, small letters, and the results with a reason for each entry.
    let bound = 10 * body.utf8.count + (Outbox.highWater + 10) * 1_100 + 10 * 1_000 * 150
    #expect(
      bench.pipeline.backpressure.bodies.total > 10 * body.utf8.count && bench.pipeline.backpressure.bodies.total <= bound)
    var letters: [String: Int] = [:]
    var results = 0
    bench.confirmAll { kind, body in
      #expect(bench.outbox.backlog <= Outbox.highWater + 10 && bench.pipeline.backpressure.bodies.total <= bound)
      switch kind {
      case .deadLetter: letters[String(decoding: body.prefix { $0 != UInt8(ascii: ",") }, as: UTF8.self), default: 0] += 1
      case .result: results += 1
      default: Issue.record("\(kind)")
      }
    }
    #expect(letters.count == 1000 && letters.values.allSatisfy { $0 == 10 } && letters[#"{"to":" 999""#] == 10)
    #expect(results == 10 && bench.acknowledged == 10 && bench.pipeline.backpressure.bodies.total == 0)
  }

  @Test("of an application without FCM say if a text can't be any token, alone and in a list")
  func noToken() throws {
    let bench = try Bench()
    let token = String(repeating: "x", count: 100)
    for body in [#"{"to":"garbage"}"#, #"{"to":"\#(token)"}"#, #"{"registration_ids":["garbage","a:b","fcm:c","\#(token)"]}"#] {
      bench.deliver(body)
    }
    var results: [[String]] = []
    bench.confirmAll { kind, body in
      guard kind == .result, let document = try? JSONDocument(body), let list = document.value("results", of: document.root)
      else { return }
      results.append(document.elements(of: list).map { document.value("error", of: $0).map { document.text($0) } ?? "" })
    }
    let (none, other) = ("InvalidRegistration", "MismatchSenderId")
    let sorted = results.sorted { $0.count < $1.count || $0.count == $1.count && $0[0] < $1[0] }
    #expect(sorted == [[none], [other], [none, other, other, other]])
  }

  @Test("for an entry that a list repeats a thousand times are one letter, with its result each time")
  func equal() throws {
    let bench = try Bench()
    bench.deliver(request(Array(repeating: "", count: 999) + ["a b"]))
    var letters: [String] = []
    var result = ""
    bench.confirmAll { kind, body in
      if kind == .deadLetter { letters.append(String(decoding: body.prefix(14), as: UTF8.self)) }
      if kind == .result { result = String(decoding: body, as: UTF8.self) }
    }
    #expect(letters == [#"{"to":"","apns"#, #"{"to":"a b","a"#], "\(letters)")
    #expect(result.contains(#""failure":1000"#) && result.ranges(of: "InvalidRegistration").count == 1000)
    #expect(bench.acknowledged == 1)
  }
}
