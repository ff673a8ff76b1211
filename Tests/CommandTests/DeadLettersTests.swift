import AMQP
import Broker
import Foundation
import Settings
import Testing

@testable import pushfleet

@Suite("Dead letters as commands show them")
struct DeadLettersTests {
  private static let topology = Topology(ladder: [])

  private static func letter(
    app: String? = "com.example.app", id: String? = "m", body: [UInt8] = Array("{}".utf8), exchange: String = "push.dead",
    key: String = "dead", _ headers: FieldTable
  ) -> Letter {
    var delivery = Delivery()
    delivery.exchange = Array(exchange.utf8)
    delivery.routingKey = Array(key.utf8)
    delivery.body = body
    delivery.bodySize = UInt64(body.count)
    delivery.properties.appID = app.map { Array($0.utf8) }
    delivery.properties.messageID = id.map { Array($0.utf8) }
    delivery.properties.headers = headers
    return Letter(delivery, topology)
  }

  private static func failed(_ error: String, _ reason: String, at time: String = "2026-11-20T21:22:00.500Z") -> FieldTable {
    [
      "x-push-error": .text(error), "x-push-reason": .text(reason), "x-push-failed-at": .text(time),
      "x-push-origin": .text("send.high"),
    ]
  }

  private static let expired: FieldTable = [
    "x-death": .array([.table(["queue": .text("push.send.normal"), "reason": .text("expired"), "time": .timestamp(1_000)])]),
    "x-push-error": .text("Forged"),
  ]

  @Test("are grouped by application, error, reason and origin, the place in a body aside")
  func groups() throws {
    var groups = LetterGroups()
    for place in 1...3 { groups.add(Self.letter(Self.failed("InvalidParameters", "to: bad at byte \(place)"))) }
    groups.add(Self.letter(Self.failed("InvalidParameters", "to: bad at byte 9", at: "2026-11-21T00:00:00Z")))
    groups.add(Self.letter(Self.expired))
    groups.add(Self.letter(exchange: "push.send", key: "urgent", [:]))
    let lines = groups.json.map { (try? JSONSerialization.jsonObject(with: Data($0.line))) as? [String: Any] ?? [:] }
    #expect(lines.count == 3 && lines[0]["count"] as? Int == 4 && lines[0]["reason"] as? String == "to: bad")
    #expect(
      lines[0]["oldest"] as? String == "2026-11-20T21:22:00.500Z" && lines[0]["newest"] as? String == "2026-11-21T00:00:00.000Z"
    )
    let broken = try #require(lines.first { $0["origin"] as? String == "send.normal" })
    #expect(broken["error"] is NSNull && broken["reason"] as? String == "given up by the broker: expired")
    #expect(broken["oldest"] as? String == "1970-01-01T00:16:40.000Z")
    for width in [20, 80, 200] { #expect(groups.text(width: width).split(separator: "\n").allSatisfy { $0.count <= width }) }
  }

  @Test("a walk whose queue is deleted ends with the queue's name")
  func deletedQueue() throws {
    let site = try RegistrySite()
    let walk = try LetterWalk(try Configuration.load(path: site.configuration, environment: [:]), .dead, maximumBody: 1)
    walk.cancelled(queue: 0)
    #expect(walk.failure?.message == "the queue \(LetterQueue.dead.name(walk.topology)) was deleted; nothing has been changed")
  }

  private static let long =
    "a reason that takes more than eighty columns to say, and has its most telling words at its beginning"

  private static func table(width: Int) -> [String] {
    var groups = LetterGroups()
    groups.add(letter(app: "com.example.an-application-with-a-name", failed("InvalidParameters", long)))
    groups.add(letter(failed("DeviceMessageRateExceeded", "429 TooManyRequests")))
    return groups.text(width: width).split(separator: "\n").map(String.init)
  }

  @Test("are counted in few columns with application, error and origin, and the whole reason below", arguments: [60, 80])
  func narrowTable(width: Int) throws {
    let lines = Self.table(width: width)
    #expect(lines[0].split(whereSeparator: \.isWhitespace).prefix(4) == ["COUNT", "APP", "ERROR", "FROM"], "\(lines)")
    let index = try #require(lines.firstIndex { $0.contains("InvalidParam") })
    #expect(lines[index].contains("com.ex") && lines.allSatisfy { $0.count <= width }, "\(lines)")
    let below = lines.dropFirst(index + 1).prefix { $0.hasPrefix("  a ") || !$0.contains("Exceeded") }
    #expect(below.joined(separator: " ").split(separator: " ").joined(separator: " ").hasPrefix(Self.long), "\(lines)")
  }

  @Test("are counted with all that is known where there is room")
  func wideTable() throws {
    let lines = Self.table(width: 250)
    #expect(
      lines[0].split(whereSeparator: \.isWhitespace) == ["COUNT", "APP", "ERROR", "FROM", "OLDEST", "NEWEST", "REASON"])
    let line = try #require(lines.first { $0.contains("InvalidParameters") })
    #expect(line.contains(Self.long) && line.contains("com.example.an-application-with-a-name  "))
    #expect(line.contains("2026-11-20T21:22:00Z  2026-11-20T21:22:00Z"))
  }

  @Test("of endless kinds take bounded room, and none goes uncounted")
  func manyKinds() {
    var groups = LetterGroups()
    for number in 0..<10_000 { groups.add(Self.letter(app: "app\(number % 5_000)", Self.failed("E\(number)", "r\(number)"))) }
    #expect(groups.groups.count <= 2_001 && groups.groups.values.reduce(0) { $0 + $1.count } == 10_000)
  }

  @Test("are chosen by application, error, part of the reason, age and id")
  func filters() throws {
    let now: Int64 = 1_795_209_720_500 + 3_600_000  // an hour after they failed
    func chosen(_ words: [String], _ letter: Letter) throws -> Bool {
      try LetterFilter(DeadCommand.page.options(["show"] + words), now: now).matches(letter)
    }
    let letter = Self.letter(Self.failed("Unavailable", "503 ServiceUnavailable"))
    for words in [
      [], ["--app", "com.example.app"], ["--error", "Unavailable"], ["--reason", "serviceunav"], ["--since", "61m"],
      ["--origin", letter.origin ?? "-"],
    ] {
      #expect(try chosen(words, letter), "\(words)")
    }
    for words in [
      ["--app", "other"], ["--error", "-"], ["--reason", "504"], ["--origin", "acks"], ["--since", "59m"], ["--id", "n"], ["n"],
    ] {
      #expect(try !chosen(words, letter), "\(words)")
    }
    // A held request: an hour ago it was first put off, whatever its producer's time is.
    var held = Self.letter(
      exchange: "push.hold", ["x-push-retry-since": .integer(now - 3_600_000), "x-push-retry-error": .text("Unavailable")])
    #expect(try chosen(["--since", "61m", "--error", "Unavailable"], held) && !chosen(["--since", "59m"], held))
    held = Self.letter(exchange: "push.hold", [:])
    #expect(held.failedAt == nil)
    #expect(try chosen(["n", "m"], letter) && chosen(["--since", "2026-11-20T21:22:00Z"], letter))
    #expect(try chosen(["--error", "-"], Self.letter(Self.expired)) && chosen(["--app", "-"], Self.letter(app: nil, [:])))
    for bad in ["yesterday", "5", "-1h", "", "9999999999999d"] {
      #expect(throws: CommandFailure.self) { try chosen(["--since", bad], letter) }
    }
  }

  @Test("are shown whole, and nothing in them reaches the terminal as it came")
  func whole() throws {
    let wild = Self.letter(
      app: "a\u{1B}[2J", id: nil, body: [0xFF, 0x1B],
      [
        "x-push-error": .text("E\u{7}"), "n": .integer(-5), "b": .bytes([0xFF]),
        "t": .table(["k": .array([.void, .bool(true)])]),
        "d": .decimal(scale: 2, value: 314), "s": .text("\u{1B}]0;x"),
      ])
    #expect(!wild.text.unicodeScalars.contains { $0.value < 0x20 && $0 != "\n" || $0.value == 0x7F })
    let json = try #require(try JSONSerialization.jsonObject(with: Data(wild.json.line)) as? [String: Any])
    let headers = try #require(json["headers"] as? [String: Any])
    #expect(json["body_base64"] as? String == "/xs=" && headers["n"] as? Int == -5 && headers["b"] as? String == "/w==")
    #expect(headers["d"] as? Double == 3.14 && json["message_id"] is NSNull)
    let plain = Self.letter(Self.failed("Unavailable", "500"))
    let line = try #require(try JSONSerialization.jsonObject(with: Data(plain.json.line)) as? [String: Any])
    #expect(
      line["body"] as? String == "{}" && line["origin"] as? String == "send.high" && line["error"] as? String == "Unavailable")
  }

  @Test("go out at a rate that is said in letters a second, minute or hour")
  func rates() throws {
    #expect(try DeadCommand.rate("5") == 5 && DeadCommand.rate("120/m") == 2 && DeadCommand.rate("36/h") == 0.01)
    for bad in ["", "0/s", "-1/s", "5/d", "5/s/s", "1.5/s", "x"] {
      #expect(throws: CommandFailure.self) { try DeadCommand.rate(bad) }
    }
  }
}
