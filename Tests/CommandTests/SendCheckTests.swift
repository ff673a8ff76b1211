import Foundation
import Settings
import TestSupport
import Testing

@testable import pushfleet

@Suite("pushfleet send --check")
struct SendCheckTests {
  /// A request, and the code with which it is refused by an application that has APNs alone.
  static let requests: [(json: String, code: String?)] = [
    (#"{"to":"apns:\#(token(1))","notification":{"body":"x"}}"#, nil),
    (#"{"to":"/topics/news","notification":{"body":"x"}}"#, nil), (#"{"to":"pf1r~00000000000000000000000000"}"#, nil),
    (#"{"to":"apns:\#(token(1))","notifcation":{}}"#, "InvalidParameters"), (#"{"notification":{}}"#, "MissingRegistration"),
    (#"{"to":"fcm:abcdefgh","data":{"a":"b"}}"#, "MismatchSenderId"),
    (#"{"to":"abcdefgh","data":{"a":"b"}}"#, "InvalidRegistration"),
    (#"{"to":"cXyZ:APA91b","data":{"a":"b"}}"#, "MismatchSenderId"),
    (#"{"to":"\#(String(repeating: "x", count: 100))","data":{"a":"b"}}"#, "MismatchSenderId"),
    (#"{"registration_ids":["apns:\#(token(1))","fcm:abcdefgh"],"data":{"a":"b"}}"#, "MismatchSenderId"),
    (#"{"to":"apns:\#(token(1))","data":{"from":"b"}}"#, "InvalidDataKey"),
    (#"{"to":"apns:\#(token(1))","notification":{"body":"\#(String(repeating: "x", count: 5000))"}}"#, "MessageTooBig"),
    (#"{"to":"/topics/news","restricted_package_name":"other","data":{"a":"b"}}"#, "InvalidPackageName"),
  ]

  @Test("a request is judged as a worker would, for the platforms that it names")
  func judged() throws {
    let site = try RegistrySite()
    let check = RequestCheck(
      try Configuration.load(path: site.configuration, environment: [:]), app: RegistrySite.app)
    for (json, code) in Self.requests {
      #expect(check.rejection(of: Array(json.utf8))?.code.rawValue == code, "\(json.prefix(100))")
    }
  }

  @Test("a request for a user whose outcome is awaited names its application by itself where several are configured")
  func awaited() throws {
    let site = try RegistrySite()
    try site.configure("", apps: [RegistrySite.app, "other"])
    let configuration = try Configuration.load(path: site.configuration, environment: [:])
    let options = try SendCommand.page.options(["--wait", "-"])
    func awaited(_ fields: String, app: String? = nil) -> SendReport.Awaited {
      SendReport(configuration, options, app: app.map { Array($0.utf8) }).awaited(
        .init(id: [1], body: Array(#"{"to":"/users/anna"\#(fields)}"#.utf8), place: "p"))
    }
    let named = awaited(#","restricted_package_name":"other""#)
    #expect(named.app == Array("other".utf8) && named.user == Array("anna".utf8))
    #expect(awaited("", app: RegistrySite.app).app == Array(RegistrySite.app.utf8))
    #expect(awaited("").app == nil)
  }

  @Test("impossible counts in an outcome don't end send", arguments: [(Int.max, 1), (1, Int.max), (Int.min, Int.min)])
  func wildOutcome(success: Int, failure: Int) throws {
    let site = try RegistrySite()
    let options = try SendCommand.page.options(["--wait", "-"])
    let report = SendReport(try Configuration.load(path: site.configuration, environment: [:]), options, app: nil)
    report.outcome(
      Array(#"{"success":\#(success),"failure":\#(failure),"results":[{"error":"Unavailable"}]}"#.utf8), [1],
      .init(place: "line 1", app: nil, user: nil))
    #expect(throws: CommandFailure.self) { try report.end(refused: 0, problem: nil) }
  }

  @Test("a broken first line after blank ones, like all that follow, is a line of its own")
  func brokenFirstLine() {
    let reader = LineReader("-", input: Array("\n\n{\n{\"to\":1}\n{".utf8))
    var lines: [String] = []
    while let line = reader.next() { lines.append(String(decoding: line.bytes, as: UTF8.self)) }
    #expect(lines == ["", "", "{", #"{"to":1}"#, "{"])
  }

  @Test(
    "a file that can't be read to its end, or has a line without one, is an error",
    arguments: [("/proc/self/mem", "cannot be read further: Input/output error"), ("/dev/zero", "longer than 8 MiB")])
  func unreadable(file: String, said: String) throws {
    let site = try RegistrySite()
    let ended = try site.run(["send", "--check", file])
    #expect(ended.status == 65 && ended.errors.contains(file) && ended.errors.contains(said), "\(ended.errors)")
  }

  @Test(
    "a folder as standard input is an error",
    arguments: [
      ["explain", "-"], ["send", "--check", "-"], ["devices", "import", "--dry-run", "-"], ["topics", "subscribe", "t", "-"],
    ])
  func folder(words: [String]) throws {
    let site = try RegistrySite()
    let child = try ChildProcess(
      [Program.path] + words + ["--config", site.configuration], environment: RegistrySite.environment, output: nil,
      input: FileHandle(forReadingAtPath: site.folder.path))
    #expect(child.wait() == 65)
    #expect(child.waitForOutput("standard input cannot be read further: Is a directory", seconds: 90), "\(child.outputSoFar)")
  }

  @Test("a request for an application of one platform is explained without an error for the other, unless it is asked for")
  func onePlatform() throws {
    let site = try RegistrySite()
    let file = try site.write(Self.requests[0].json, "request.json")
    #expect(try site.run(["explain", file]).status == 0)
    #expect(try site.run(["explain", file, "--target", "fcm:abcdefgh"]).status == 65)
  }

  @Test("each refused request is said by its place, from a file as from standard input, and none is published")
  func said() throws {
    let site = try RegistrySite()
    let lines = [0, 3, 4].map { Self.requests[$0].json }.joined(separator: "\n") + "\n[]\n"
    for (words, input) in [([try site.write(lines, "lines.ndjson")], []), (["-"], Array(lines.utf8))] {
      // The configuration's broker can't be reached: that isn't noticed, because nobody asks for it.
      let ended = try site.run(["send", "--check"] + words, input: input)
      #expect(ended.status == 65 && ended.output.isEmpty)
      for mark in [
        "line 2: InvalidParameters: notifcation: unknown key", "line 3: MissingRegistration", "line 4: not a JSON object",
      ] {
        #expect(ended.errors.contains(mark), "\(ended.errors)")
      }
      #expect(ended.errors.hasSuffix("pushfleet: 3 of the requests would be refused: none is sent\n"), "\(ended.errors)")
    }
  }
}
