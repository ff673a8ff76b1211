import Foundation
import MachineDriver
import Providers
import Testing
import Wire

@testable import Settings
@testable import Delivery

@Suite("Spans")
struct SpanTests {
  private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
  private static let parent = "00f067aa0ba902b7"

  @Test(
    "traceparent is read by W3C's Trace Context, later versions too; other texts are ignored",
    arguments: [
      ("00-\(trace)-\(parent)-01", true), ("00-\(trace)-\(parent)-00", false), ("cc-\(trace)-\(parent)-03-what-comes", true),
    ])
  func context(text: String, isSampled: Bool) throws {
    let context = try #require(TraceContext(Array(text.utf8)))
    #expect(context.isSampled == isSampled && context.traceID == Array(Self.trace.utf8))
    #expect(context.spanID == Array(Self.parent.utf8))
  }

  @Test(
    "other texts are no traceparent",
    arguments: [
      "", "00", "00-\(trace)-\(parent)-01-more", "ff-\(trace)-\(parent)-01", "00-\(trace.uppercased())-\(parent)-01",
      "00-\(String(repeating: "0", count: 32))-\(parent)-01", "00-\(trace)-\(String(repeating: "0", count: 16))-01",
      "00_\(trace)_\(parent)_01", "00-\(trace)-\(parent)-0g", "0x-\(trace)-\(parent)-01", "cc-\(trace)-\(parent)-01x",
      String(repeating: "é", count: 40),
    ])
  func none(text: String) { #expect(TraceContext(Array(text.utf8)) == nil) }

  @Test("a span is valid JSON for any texts, with 64-bit numbers as text, and never ends before it starts")
  func json() throws {
    let hostile = "\"}],\r\n\u{1B}\u{2028}"
    var span = SpanWriter(
      name: hostile, kind: .client, trace: Array(Self.trace.utf8), span: Array(Self.parent.utf8), parent: [], start: 20, end: 10
    )
    span.attribute("text", hostile)
    span.attribute("bytes", .text([0xFF, 0x41]))
    span.attribute("number", .number(.max))
    let json = span.ended(error: hostile)
    let object = try #require(try JSONSerialization.jsonObject(with: Data(json)) as? [String: Any])
    #expect(object["name"] as? String == hostile && object["kind"] as? Int == 3)
    #expect(object["startTimeUnixNano"] as? String == "20" && object["endTimeUnixNano"] as? String == "20")
    #expect((object["status"] as? [String: Any])?["message"] as? String == hostile)
    let values = (object["attributes"] as? [[String: Any]])?.compactMap { $0["value"] as? [String: Any] } ?? []
    #expect(values.map { $0.keys.first } == ["stringValue", "stringValue", "intValue"])
    #expect(values[2]["intValue"] as? String == "\(Int64.max)")
  }

  private static func post(_ body: [UInt8] = [], longestAnswer: Int = 1_000) -> HTTPFetch.Request {
    var request = HTTPFetch.Request(
      method: "POST", host: "h:4318", path: "/v1/traces", timeout: 10, longestAnswer: longestAnswer)
    request.headers = [("X-One", "1")]
    request.body = body
    return request
  }

  @Test(
    "a call ends with its answer, in any number of pieces, and with none for invalid ones",
    arguments: [
      ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", HTTPFetch.Answer.answered(status: 200, body: Array("{}".utf8))),
      ("HTTP/1.0 503 \r\n\r\n", .answered(status: 503, body: [])), ("HTTP/1.1 2", .failed("closed by the peer")),
      ("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{}", .answered(status: 200, body: nil)),
      ("HTTP/1.0 200 OK\r\n\r\nto the end\r\n\r\n", .answered(status: 200, body: Array("to the end\r\n\r\n".utf8))),
      ("HTTP/1.1 200 OK\r\nX", .failed("closed by the peer")), ("HTTP/1.1 200 OK\r\n", .failed("closed by the peer")),
      ("HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n", .failed("closed by the peer")),
      ("HTTP/1.1 200 OK\r\n\r\n" + String(repeating: "x", count: 2_000), .answered(status: 200, body: nil)),
      (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
        .answered(status: 200, body: Array("{}".utf8))
      ),
      ("garbage\r\n", .failed("the answer doesn't begin with a status")),
      ("", .failed("closed by the peer")),
    ])
  func call(answer: String, expected: HTTPFetch.Answer) {
    for size in [1, 7, 10_000] {
      var answers: [HTTPFetch.Answer] = []
      let call = HTTPFetch(Self.post([UInt8](repeating: 0x20, count: 200_000))) { answers.append($0) }
      let driver = MachineDriver(call)
      let now = MonotonicTime(nanoseconds: 1)
      driver.open(at: now)
      driver.settle(at: now)
      for start in stride(from: 0, to: answer.utf8.count, by: size) where !call.isFinished {
        driver.receive(Array(answer.utf8.dropFirst(start).prefix(size)), at: now)
      }
      driver.finish(.closedByPeer, at: now)
      #expect(answers == [expected])
    }
  }

  @Test("a collector that doesn't answer is given up in time")
  func silence() {
    var answers: [HTTPFetch.Answer] = []
    let call = HTTPFetch(Self.post()) { answers.append($0) }
    let now = MonotonicTime(nanoseconds: 1)
    call.transportOpened(at: now)
    #expect(call.deadline == now.advanced(bySeconds: 10))
    call.deadlineReached(at: call.deadline)
    call.transportClosed(.closedLocally, at: call.deadline)
    #expect(answers == [.failed("no answer in time")] && call.isFinished)
  }

  @Test(
    "a collector's address has a scheme and a host, and may have a base path",
    arguments: [
      ("http://c", "c", 4_318, "/v1/traces"), ("https://c.example:443/otel/", "c.example", 443, "/otel/v1/traces"),
      ("http://[::1]:99", "::1", 99, "/v1/traces"),
    ])
  func address(text: String, host: String, port: UInt16, path: String) throws {
    let settings = try #require(OTLPSettings(text))
    #expect(settings.address.endpoint.host == host && settings.address.endpoint.port == port && settings.address.path == path)
    #expect(settings.address.isTLS == text.hasPrefix("https"))
  }

  @Test(
    "other addresses are refused",
    arguments: [
      "", "c:4318", "ftp://c", "http://", "http://u:p@c", "http://c:0", "http://c:70000", "http://c/?q", "http://a b",
    ])
  func noAddress(text: String) { #expect(OTLPSettings(text) == nil) }

  @Test(
    "headers for the collector are names and percent-encoded values",
    arguments: [
      ("api-key=secret", ["api-key": "secret"]), ("a=1, b = two%20words ,c=", ["a": "1", "b": "two words", "c": ""]),
      ("authorization=Basic%20dXNlcjpwYXNz%3D%3D", ["authorization": "Basic dXNlcjpwYXNz=="]), ("a=b=c", ["a": "b=c"]),
      ("", [:]),
    ])
  func headers(text: String, expected: [String: String]) throws {
    let headers = try #require(OTLPHeaders(text))
    #expect(Dictionary(uniqueKeysWithValues: headers.fields.map { ($0.name, $0.value) }) == expected)
    #expect(!"\(headers)".contains("secret") && !"\(Mirror(reflecting: headers).children.map(\.value))".contains("secret"))
  }

  @Test(
    "malformed, multi-line and reserved headers are refused",
    arguments: ["secret", "=v", "a b=c", "a=%0d%0aX: y", "a=%00", "a=%zz", "Host=x", "content-length=0", "a:=b", "ä=b"])
  func noHeaders(text: String) { #expect(OTLPHeaders(text) == nil) }

  private func configuration(_ settings: String, _ environment: [String: String]) throws -> Configuration {
    let file = FileManager.default.temporaryDirectory.appending(path: "spans-\(UUID().uuidString).json5")
    defer { try? FileManager.default.removeItem(at: file) }
    try """
    { broker: "amqp://b", \(settings) apps: { a: { apns: { key: "k.p8", keyID: "ABC123DEFG", teamID: "DEF123GHIJ" } } } }
    """.write(to: file, atomically: false, encoding: .utf8)
    return try Configuration.load(path: file.path, environment: environment)
  }

  @Test(
    "the collector, its headers and its authority come from settings, else from OpenTelemetry's variables, those for traces first"
  )
  func sources() throws {
    let variables = [
      "OTEL_EXPORTER_OTLP_ENDPOINT": "https://one/base", "OTEL_EXPORTER_OTLP_HEADERS": "a=1",
      "OTEL_EXPORTER_OTLP_CERTIFICATE": "/ca.pem",
    ]
    let plain = try #require(try configuration("", variables).traces)
    #expect(
      plain.address.endpoint.host == "one" && plain.address.path == "/base/v1/traces"
        && plain.headers.fields.map(\.value) == ["1"])
    #expect(plain.ca == .file("/ca.pem"))
    let own = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://two:99/spans", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "a=2"]
    let traces = try #require(try configuration("", variables.merging(own) { $1 }).traces)
    #expect(
      traces.address.endpoint.host == "two" && traces.address.path == "/spans" && traces.headers.fields.map(\.value) == ["2"])
    let set = #"traces: "https://three", tracesHeaders: "a=3", tracesCA: "ca.pem","#
    let settings = try #require(try configuration(set, variables.merging(own) { $1 }).traces)
    #expect(
      settings.address.endpoint.host == "three" && settings.headers.fields.map(\.value) == ["3"]
        && "\(settings.ca!)".hasSuffix("/ca.pem"))
    #expect(
      try configuration("", ["OTEL_EXPORTER_OTLP_HEADERS": "nonsense", "OTEL_EXPORTER_OTLP_CERTIFICATE": "x"]).traces == nil)
  }

  @Test("an unusable header, and settings without a collector, are refused without repeating a secret")
  func refusedSources() throws {
    func problem(_ settings: String, _ environment: [String: String]) -> String {
      do { _ = try configuration(settings, environment) } catch { return "\(error)" }
      return ""
    }
    let collector = #"traces: "http://c","#
    #expect(problem(#"tracesHeaders: "a=b","#, [:]).contains("tracesHeaders is given without traces"))
    #expect(problem(#"tracesCA: "ca.pem","#, [:]).contains("tracesCA is given without traces"))
    let texts = [
      problem(collector, ["OTEL_EXPORTER_OTLP_HEADERS": "Bearer s3cret"]),
      problem(collector + #"tracesHeaders: "Bearer s3cret","#, [:]),
      problem(collector, ["PUSHFLEET_TRACESHEADERS": "Bearer s3cret"]),
    ]
    for text in texts { #expect(text.contains("must be name=value") && !text.contains("s3cret"), "\(text)") }
    #expect(texts[0].contains("OTEL_EXPORTER_OTLP_HEADERS") && texts[2].contains("PUSHFLEET_TRACESHEADERS"))
    #expect(problem("", ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "collector"]).contains("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"))
  }
}
