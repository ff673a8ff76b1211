import Foundation
import HTTP2
import Simulator
import Testing

@Suite struct ScriptTests {
  let device = String(repeating: "ab", count: 32)
  let other = String(repeating: "cd", count: 32)

  func talk(_ script: String) throws -> APNsTalk {
    var configuration = APNsConfiguration()
    configuration.script = try Script(parsing: Array(script.utf8))
    return try APNsTalk(configuration)
  }

  @Test("A scripted token gets its status, reason and timestamp; others are normal")
  func scripted() throws {
    let talk = try talk(#"{"\#(device)": {"status": 410, "reason": "Unregistered", "timestamp": 1732137600000}}"#)
    talk.push(0, token: device)
    talk.push(1, token: other)
    #expect(talk.reason(0) == #"410 {"reason":"Unregistered","timestamp":1732137600000}"#)
    #expect(talk.reason(1) == "200 ")
  }

  @Test("times, sequences, the default entry and a retry-after")
  func sequences() throws {
    let talk = try talk(
      #"""
      {"\#(device)": [{"status": 503, "retry_after": 3}, {"status": 429, "times": 2}],
       "*": {"status": 500, "times": 1}}
      """#)
    for tag in 0..<5 { talk.push(tag, token: device) }
    for tag in 5..<7 { talk.push(tag, token: other) }
    #expect((0..<7).map { talk.answers[$0]?.status } == [503, 429, 429, 200, 200, 500, 200])
    #expect(talk.reason(0) == #"503 {"reason":"ServiceUnavailable"}"#)
    #expect(talk.answers[0]?.header(2) == Array("3".utf8))
  }

  @Test("Another script counts from its beginning, on the connection that is there")
  func replaced() throws {
    let talk = try talk(#"{"*": {"status": 500, "times": 1}}"#)
    for tag in 0..<2 { talk.push(tag, token: device) }
    talk.service.play(try Script(parsing: Array(#"{"*": {"status": 503, "times": 1}}"#.utf8)))
    for tag in 2..<4 { talk.push(tag, token: device) }
    #expect((0..<4).map { talk.answers[$0]?.status } == [500, 200, 503, 200])
    #expect(Set(talk.service.journal.entries.map(\.connection)) == [1])
  }

  @Test("every: each third request, over all tokens")
  func every() throws {
    let talk = try talk(#"{"*": {"refuse": true, "every": 3}}"#)
    for tag in 0..<9 { talk.push(tag, token: tag.isMultiple(of: 2) ? device : other) }
    #expect(
      talk.failures == [2: .notProcessed(.refusedStream), 5: .notProcessed(.refusedStream), 8: .notProcessed(.refusedStream)])
  }

  @Test("Faults: reset, stall, close, delay")
  func faults() throws {
    let talk = try talk(
      #"""
      {"aa": {"reset": true}, "bb": {"stall": true}, "cc": {"close": true}, "dd": {"delay_ms": 500, "status": 503}}
      """#)
    talk.push(0, token: "aa")
    #expect(talk.failures[0] == .unknown(.reset(.internalError)))
    talk.push(1, token: "dd")
    #expect(talk.answers[1] == nil)
    talk.wait(499)
    #expect(talk.answers[1] == nil)
    talk.wait(1)
    #expect(talk.answers[1]?.status == 503)
    talk.push(2, token: "bb")
    talk.push(3, token: "cc")
    #expect(talk.failures[2] == .unknown(.connectionLost))
    #expect(talk.failures[3] == .unknown(.connectionLost))
    #expect(talk.service.journal.entries.map(\.fault) == ["reset", nil, "stall", "close"])
  }

  @Test("GOAWAY with a reason: the request that provoked it is answered or not, as the script says")
  func goAway() throws {
    let script = #"{"aa": {"goaway": "Shutdown"}, "bb": {"goaway": {"last": "previous", "code": 2}}, "*": {"delay_ms": 9}}"#
    let this = try talk(script)
    this.push(0, token: "aa")
    #expect(this.answers[0]?.status == 200)
    #expect(this.goAways.map(\.debugData) == [Array(#"{"reason":"Shutdown"}"#.utf8)])
    #expect(this.end != nil)
    let previous = try talk(script)
    previous.push(0, token: "cc")
    previous.submit(1, token: "bb")
    previous.pair.exchange()
    #expect(previous.failures == [1: .notProcessed(.goAway)])
    #expect(previous.goAways.map(\.lastStreamID) == [1])
    previous.wait(9)
    #expect(previous.answers[0]?.status == 200)
    #expect(previous.end != nil)
  }

  @Test(
    "A script that can't be meant is refused, with the place",
    arguments: [
      (#"[]"#, "a script is an object of tokens"), (#"{"a": 1}"#, "a is a number, not a step or a list of steps"),
      (#"{"a": {"statuss": 1}}"#, "a.statuss: no step has this key"),
      (#"{"a": [{"status": "410"}]}"#, "a[0].status is a string, not an integer from 100 to 999"),
      (#"{"a": {"goaway": {"last": "some"}}}"#, "a.goaway.last is a string, not one of this, previous, none, max"),
      (#"{"a": {}, "a": {}}"#, "duplicate"),
    ])
  func badScripts(_ script: String, _ message: String) {
    let error = #expect(throws: ScriptError.self) { try Script(parsing: Array(script.utf8)) }
    #expect(error?.description.contains(message) == true, "\(error?.description ?? "")")
  }
}
