import Foundation
import Glibc
import TestSupport
import Testing

@Suite("Commands", .blocking)
struct CommandTests {
  static let misuse: [(words: [String], status: Int32, said: String)] = [
    (["frobnicate"], 64, "frobnicate"),
    (["help", "frobnicate"], 64, "frobnicate"),
    (["send", "--config", "FILE", "--lane", "high", "--lane", "normal", "-"], 64, "twice"),
    (["worker", "--frob"], 64, "--frob"),
    (["worker", "--config"], 64, "--config"),
    (["worker", "--config", "FILE", "more"], 64, "more"),
    (["send", "--config", "FILE"], 64, "file"),
    (["send", "--config", "FILE", "--lane", "urgent", "-"], 64, "--lane"),
    (["send", "--config", "FILE", "--app", "com.other", "-"], 64, "com.other"),
    (["send", "--config", "FILE", "/no/such/file"], 65, "/no/such/file"),
    (["simulate"], 64, "provider"),
    (["simulate", "smoke"], 64, "smoke"),
    (["simulate", "apns"], 64, "--certificate"),
    (["topology", "--config", "/no/such/file"], 78, "/no/such/file"),
    (["topology"], 78, "broker"),
    (["feedback", "--config", "FILE", "--json=yes"], 64, "--json"),
  ]

  @Test("misuse ends with its status and a sentence that names the error")
  func misused() throws {
    let site = try Site()
    try site.configure(port: 1)
    for (words, status, name) in Self.misuse {
      let ended = try site.run(words.map { $0 == "FILE" ? site.file("pushfleet.json5") : $0 })
      #expect(ended.status == status, "\(words): \(ended.output)")
      #expect(ended.output.contains(name) && ended.output.hasPrefix("pushfleet: "), "\(words): \(ended.output)")
    }
  }

  @Test("help and version answer with status 0", arguments: [["help"], ["--help"], ["worker", "--help"], ["version"], []])
  func help(words: [String]) throws {
    let ended = try Site().run(words)
    #expect(ended.status == 0 && ended.output.contains("pushfleet"))
  }

  static let wrongSettings: [(line: String, key: String)] = [
    ("colour: 1,", "colour"), ("prefetch: 0,", "prefetch"), ("prefetch: \"many\",", "prefetch"),
    ("results: \"some\",", "results"),
    ("retry: { attempts: 0 },", "retry.attempts"), ("retry: { steps: [\"soon\"] },", "retry.steps"),
    ("retry: { steps: [\"2s\", \"1s\"] },", "retry.steps"), ("retry: { step: 1 },", "retry.step"),
    ("drainTimeout: -1,", "drainTimeout"), ("log: \"loud\",", "log"), ("prefix: \"a b\",", "prefix"),
    ("broker: \"http://127.0.0.1\",", "broker"), ("broker: [],", "broker"), ("{", "JSON5"),
  ]

  @Test("a wrong configuration ends every command with 78 and names the key")
  func wrongConfiguration() throws {
    let site = try Site()
    try site.configure(port: 1)
    let text = try String(contentsOfFile: site.file("pushfleet.json5"), encoding: .utf8)
    for (line, key) in Self.wrongSettings {
      let changed = text.replacing("apps: {", with: "\(line) apps: {").replacing(
        line.hasPrefix("prefix") ? "prefix: \"\(site.prefix)\"," : "\u{0}", with: ""
      ).replacing(line.hasPrefix("broker") ? "broker: \"\(site.brokerURI)\"," : "\u{0}", with: "")
      let file = try site.write(changed, to: "wrong.json5")
      let ended = try site.run(["worker", "--config", file])
      #expect(ended.status == 78 && ended.output.contains(key), "\(line): \(ended.status) \(ended.output)")
    }
    let wrongApps: [(apns: String, key: String)] = [
      ("key: \"/no/such.p8\", keyID: \"ABC123DEFG\", teamID: \"DEF123GHIJ\"", "apps.com.example.app.apns.key"),
      ("key: \"\(site.certificates.p384Key)\", keyID: \"ABC123DEFG\", teamID: \"DEF123GHIJ\"", "apps.com.example.app.apns.key"),
      ("key: \"\(site.certificates.p8)\", teamID: \"DEF123GHIJ\"", "apps.com.example.app.apns.keyID"),
      (
        "certificate: \"\(site.certificates.clientP12)\", passphrase: \"wrong-secret\"", "apps.com.example.app.apns.certificate"
      ),
      (
        "endpoint: \"http://127.0.0.1\", key: \"k\", keyID: \"ABC123DEFG\", teamID: \"DEF123GHIJ\"",
        "apps.com.example.app.apns.endpoint"
      ),
      (
        "ca: \"/no/such.pem\", key: \"\(site.certificates.p8)\", keyID: \"ABC123DEFG\", teamID: \"DEF123GHIJ\"",
        "apps.com.example.app"
      ),
      ("verify: false, key: \"k\", keyID: \"ABC123DEFG\", teamID: \"DEF123GHIJ\"", "apps.com.example.app.apns.verify"),
    ]
    for (apns, key) in wrongApps {
      let file = try site.write(
        "{ broker: \"\(site.brokerURI)\", apps: { \"com.example.app\": { apns: { \(apns) } } } }", to: "wrong.json5")
      let ended = try site.run(["worker", "--config", file])
      #expect(ended.status == 78 && ended.output.contains(key), "\(apns): \(ended.status) \(ended.output)")
      #expect(!ended.output.contains("wrong-secret"))
    }
  }

  @Test(
    "a system without certificate authorities is reported at the start, with the package to install; an application with its own needs none"
  )
  func noAuthorities() throws {
    let site = try Site()
    try site.startSimulator()
    let config = try String(contentsOfFile: site.file("pushfleet.json5"), encoding: .utf8)
    try site.write(config.replacing(#", ca: "\#(site.certificates.authority)""#, with: ""), to: "system.json5")
    let nothing = ["SSL_CERT_FILE": "/no/such.pem", "SSL_CERT_DIR": "/no/such"]
    let ended = try site.run(["worker", "--config", site.file("system.json5")], environment: nothing)
    #expect(ended.status == 78 && ended.output.contains("install ca-certificates"), "\(ended.status) \(ended.output)")
    #expect(ended.output.contains("apps.com.example.app.apns.ca") && ended.output.contains("/no/such.pem"), "\(ended.output)")
    try site.declareTopology()
    try site.drain(environment: nothing)
  }

  @Test("a missing broker, or a refused password, is status 69; the password is not repeated")
  func unavailable() throws {
    let site = try Site()
    site.brokerURI = "amqp://guest:wrong-secret@127.0.0.1:\(site.broker.port)"
    try site.configure(port: 1)
    let request = try site.write(#"{"to":"\#(token(1))"}"#, to: "one.json")
    let config = site.file("pushfleet.json5")
    for words in [["worker"], ["topology"], ["feedback"], ["send", request]] {
      let ended = try site.run([words[0], "--config", config] + words.dropFirst())
      #expect(ended.status == 69 && ended.output.contains("refused the user"), "\(words): \(ended.status) \(ended.output)")
      #expect(!ended.output.contains("wrong-secret"))
    }
    site.brokerURI = "amqp://guest:guest@127.0.0.1:\(site.broker.port)/nowhere"
    try site.configure(port: 1)
    let lost = try site.run(["send", "--config", config, request])
    #expect(lost.status == 69 && lost.output.contains("virtual host"), "\(lost.output)")
    site.brokerURI = "amqp://guest:guest@127.0.0.1:\(try FreePorts.take(1)[0])"
    try site.configure(port: 1)
    let away = try site.run(["send", "--config", config, request])
    #expect(away.status == 69 && away.output.contains("unreachable"), "\(away.output)")
  }

  @Test("SIGHUP makes a simulator read its script again; an unusable one changes nothing, and neither ends it")
  func scriptReadAgain() throws {
    let site = try Site()
    try site.startSimulator(script: [token(1): ["status": 503]])
    let simulator = try #require(site.simulator)
    try site.write(#"{"*": {"status": "high"}}"#, to: "journal-script.json")
    simulator.signal(SIGHUP)
    #expect(simulator.waitForOutput("plays the script it had", seconds: 90))
    try site.write(#"{"\#(token(1))": {"status": 410, "reason": "Unregistered"}}"#, to: "journal-script.json")
    simulator.signal(SIGHUP)
    #expect(simulator.waitForOutput("plays its script as it is now", seconds: 90))
    try site.declareTopology()
    try site.send(tokens: [token(1)])
    try site.drain()
    #expect(try site.pushes().map(\.status) == [410])
  }

  @Test("topology declares the same twice, and names an existing queue with other settings")
  func topology() throws {
    let site = try Site()
    try site.configure(port: 1)
    let config = site.file("pushfleet.json5")
    let first = try site.run(["topology", "--config", config])
    let second = try site.run(["topology", "--config", config, "--json"])
    #expect(first.status == 0 && second.status == 0)
    let queues = Site.objects(second.output).compactMap { $0["queue"] as? String }
    #expect(queues == first.output.split(separator: "\n").map(String.init))
    #expect(queues.contains("\(site.prefix).send.high") && queues.contains("\(site.prefix).retry.15m"))
    #expect(queues.contains("\(site.prefix).registry") && queues.contains("\(site.prefix).trace") && queues.count == 18)

    let other = try Site()
    try other.configure(port: 1)
    try other.peer(["declare", "\(other.prefix).send.normal"])
    for command in ["topology", "worker"] {
      let ended = try other.run([command, "--config", other.file("pushfleet.json5")])
      #expect(ended.status == 78 && ended.output.contains("\(other.prefix).send.normal"), "\(ended.output)")
    }
  }

  @Test("send publishes files, lines and standard input, names invalid lines, and reports missing queues")
  func send() throws {
    let site = try Site()
    try site.configure(port: 1)
    let config = site.file("pushfleet.json5")
    let one = try site.write("{\n  \"to\": \"\(token(1))\",\n  \"data\": {}\n}\n", to: "one.json")
    let missing = try site.run(["send", "--config", config, one])
    #expect(missing.status == 69 && missing.output.contains("pushfleet topology"), "\(missing.output)")
    try site.declareTopology()

    let lines = try site.write(
      #"""
      {"to":"a"}
      {"to":

      [1]
      {"to":"b","to":"c"}
      {"to":"d"}
      """#, to: "lines.ndjson")
    let mixed = try site.run(["send", "--config", config, "--json", one, lines])
    #expect(mixed.status == 65, "\(mixed.output)")
    for line in ["line 2", "line 4", "line 5"] { #expect(mixed.output.contains("lines.ndjson, \(line)"), "\(mixed.output)") }
    #expect(Site.objects(mixed.output).last as? [String: Int] == ["sent": 3, "refused": 3])
    let piped = try site.run(["send", "--config", config, "--lane", "high", "--app", Site.app, "-"], input: lines)
    #expect(piped.status == 65 && piped.output.contains("2 sent, 3 refused"), "\(piped.output)")
    let good = try site.run(["send", "--config", config, one])
    #expect(good.status == 0)
    let unread = try site.run(["send", "--config", config, one, "/proc/self/mem"])
    #expect(unread.status == 65 && unread.output.contains("1 sent"), "\(unread.output)")
    #expect(unread.output.contains("/proc/self/mem cannot be read further"), "\(unread.output)")

    let normal = try site.take("send.normal")
    #expect(normal.map(\.body).contains(try String(contentsOfFile: one, encoding: .utf8)) && normal.count == 5)
    #expect(Set(normal.map(\.id)).count == 5)
    #expect(normal.allSatisfy { $0.properties["content_type"] as? String == "application/json" })
    let high = try site.take("send.high")
    #expect(high.count == 2 && high.allSatisfy { $0.properties["app_id"] as? String == Site.app })
    let now = Date().timeIntervalSince1970
    #expect(high.allSatisfy { abs((($0.properties["timestamp"] as? Double) ?? 0) - now) < 60 })
  }

  @Test("send chooses no application if several are configured")
  func sendToWhom() throws {
    let site = try Site()
    try site.configure(port: 1)
    let one = try String(contentsOfFile: site.file("pushfleet.json5"), encoding: .utf8)
    let app = "{ fcm: { serviceAccount: \"account.json\" } }"
    let two = try site.write(one.replacing("apps: {", with: "apps: { \"com.example.other\": \(app),"), to: "two.json5")
    let requests = try site.write(
      """
      {"to":"\(token(1))"}
      {"to":"\(token(2))","restricted_package_name":"com.example.other"}
      """, to: "two.ndjson")
    try site.declareTopology()
    let ended = try site.run(["send", "--config", two, requests])
    #expect(ended.status == 65 && ended.output.contains("line 1: several applications are configured"), "\(ended.output)")
    let sent = try site.take("send.normal")
    #expect(sent.map { $0.json["to"] as? String } == [token(2)] && sent.first?.properties["app_id"] == nil)
  }

  @Test("send accepts one object on many lines, after blank ones, up to the size limit of the configuration")
  func sendOneObject() throws {
    let site = try Site()
    try site.configure(port: 1, settings: "limits: { body: 2097152 },")
    try site.declareTopology()
    let data = String(repeating: "x", count: 600_000)
    let request = try site.write("\n \n{\n  \"to\": \"\(token(1))\",\n  \"data\": {\"k\": \"\(data)\"}\n}\n", to: "one.json")
    let ended = try site.run(["send", "--config", site.file("pushfleet.json5"), request])
    #expect(ended.status == 0, "\(ended.output)")
    #expect(try site.take("send.normal").map { ($0.json["data"] as? [String: Any])?["k"] as? String } == [data])
  }

  /// `send` with 200 requests, at a full queue.
  private func startSendingToFullQueue() throws -> (site: Site, queue: String, child: ChildProcess) {
    let site = try Site()
    try site.configure(port: 1)
    try site.declareTopology()
    let queue = "\(site.prefix).send.normal"
    try site.broker.limit(queue, to: 5)
    // A queue that fills up accepts more than its limit, and refuses later messages.
    try site.send(tokens: (0..<50).map(token))
    let lines = try site.write((0..<200).map { #"{"to":"\#(token($0))"}"# }.joined(separator: "\n"), to: "lines.ndjson")
    let child = try site.start(["send", "--config", site.file("pushfleet.json5"), lines])
    #expect(child.waitForOutput("the queue \(queue) is full", seconds: 90))
    return (site, queue, child)
  }

  @Test("send reports a full queue, and at its end how far it came")
  func sendToFullQueue() throws {
    let (site, queue, child) = try startSendingToFullQueue()
    child.signal(2)
    #expect(child.wait() == 130)
    #expect(child.outputSoFar.contains("interrupted: ") && child.outputSoFar.contains("lines.ndjson, line "))
    try site.broker.limit(queue, to: nil)
  }

  @Test("explain reads a request up to the configured size")
  func explainsLargeRequests() throws {
    let site = try Site()
    try site.configure(port: 1, settings: "limits: { body: 1048576 },")
    let request = #"{"to":"\#(token(1))","notification":{"title":"t"}\#(String(repeating: " ", count: 600_000))}"#
    let file = try site.write(request, to: "large.json")
    let taken = try site.run(["explain", "--config", site.file("pushfleet.json5"), file])
    #expect(taken.status == 0, "\(taken.output.suffix(300))")
    let refused = try site.run(["explain", file])
    #expect(refused.status == 65 && refused.output.contains("MessageTooBig"), "\(refused.output.suffix(300))")
  }

  @Test("standard input is sent as it arrives, and an interruption ends the wait for more")
  func slowInput() throws {
    let site = try Site()
    try site.startFleet()
    let config = ["--config", site.file("pushfleet.json5")]
    let requests = Pipe()
    let sender = try site.start(["send", "--timeout", "5"] + config + ["-"], input: requests.fileHandleForReading)
    for number in 1...2 {
      let line = #"{"to":"\#(token(number))","data":{"n":"\#(number)"}}"# + "\n"
      try requests.fileHandleForWriting.write(contentsOf: Data(line.utf8))
      #expect(try eventually { try site.depths(["send.normal"]) == [number] })
    }
    sender.signal(2)
    #expect(sender.wait() == 130 && sender.outputSoFar.contains("interrupted: 2 sent"), "\(sender.outputSoFar)")

    let devices = Pipe()
    let importer = try site.start(["devices", "import"] + config + ["-"], input: devices.fileHandleForReading)
    try devices.fileHandleForWriting.write(contentsOf: Data("platform,token,user\napns,\(token(1)),anna\n".utf8))
    // It sends the lines that have come; only then is it asked to end.
    #expect(
      eventually {
        var bytes: Int32 = 0
        return ioctl(devices.fileHandleForReading.fileDescriptor, UInt(FIONREAD), &bytes) == 0 && bytes == 0
      })
    importer.signal(15)
    #expect(importer.wait() == 130 && importer.outputSoFar.contains("interrupted in standard input"), "\(importer.outputSoFar)")
  }

  @Test("send continues when a full queue has room again, even if the broker refuses on the old channel")
  func sendToQueueWithRoomAgain() throws {
    let (site, queue, child) = try startSendingToFullQueue()
    try site.broker.limit(queue, to: nil)
    try #require(child.waitForOutput("200 sent", seconds: 90), "\(child.outputSoFar)")
    #expect(child.wait() == 0)
    #expect(try eventually { try site.depths(["send.normal"]) == [250] })
  }

  @Test("send doesn't begin if its lane has no queue, because the broker would dead-letter confirmed requests")
  func sendWithoutLane() throws {
    let site = try Site()
    try site.configure(port: 1)
    try site.declareTopology()
    let request = try site.write(#"{"to":"\#(token(1))"}"#, to: "one.json")
    try site.peer(["delete", "\(site.prefix).send.high"])
    let ended = try site.run(["send", "--config", site.file("pushfleet.json5"), "--lane", "high", request])
    #expect(ended.status == 69 && ended.output.contains("pushfleet topology"), "\(ended.output)")
    #expect(try site.depths(["dead"]) == [0])
    #expect(try site.run(["send", "--config", site.file("pushfleet.json5"), request]).status == 0)
  }

  @Test("unreadable feedback stays in the queue, and so do events that a reader left")
  func unreadFeedback() throws {
    let site = try Site()
    try site.startSimulator(script: ["*": ["status": 410, "reason": "Unregistered"]])
    try site.declareTopology()
    try site.send(tokens: [token(1)])
    try site.drain()
    let closed = try ChildProcess(
      ["/bin/bash", "-c", #"exec "$1" feedback --config "$2" >&-"#, "bash", Program.path, site.file("pushfleet.json5")],
      environment: Site.environment, output: site.file("shell.log"))
    #expect(closed.wait() == 69)
    #expect(try String(contentsOfFile: site.file("shell.log"), encoding: .utf8).contains("standard output is closed"))
    let gone = try ChildProcess(
      ["/bin/bash", "-c", #""$1" feedback --config "$2" | true"#, "bash", Program.path, site.file("pushfleet.json5")],
      environment: Site.environment, output: site.file("shell.log"))
    #expect(gone.wait() == 0)
    #expect(try String(contentsOfFile: site.file("shell.log"), encoding: .utf8).isEmpty)
    #expect(try site.peer(["consume", "\(site.prefix).feedback", "--count", "1", "--wait", "10"]).contains(token(1)))
  }

  @Test("a file of lines differs from a file of one object by its second line, and a folder is no file")
  func brokenFirstLine() throws {
    let site = try Site()
    try site.configure(port: 1)
    try site.declareTopology()
    let config = site.file("pushfleet.json5")
    let lines = try site.write("{\"to\":\n{\"to\":\"b\"}\n{\"to\":\"c\"}\n", to: "lines.ndjson")
    let ended = try site.run(["send", "--config", config, "--json", lines])
    #expect(ended.status == 65 && Site.objects(ended.output).last as? [String: Int] == ["sent": 2, "refused": 1])
    let object = try site.write("{\n\"to\": \"b\",\n\"data\": {\n}\n", to: "broken.json")
    let broken = try site.run(["send", "--config", config, "--json", object])
    #expect(broken.status == 65 && Site.objects(broken.output).last as? [String: Int] == ["sent": 0, "refused": 1])
    let folder = try site.run(["send", "--config", config, site.folder.path])
    #expect(folder.status == 65 && folder.output.contains(site.folder.path))
  }

  static let streams: [(line: String, status: Int32, said: String)] = [
    (#"exec "$1" worker --config "$2" --until-empty <&- >&- 2>&-"#, 0, ""),
    (#"exec "$1" worker --config "$2" --until-empty --json 2>/dev/null >&-"#, 69, ""),
    (#"exec "$1" worker --config "$2" --until-empty 2>/dev/full"#, 0, ""),
    (#"exec "$1" worker --config "$2" --until-empty --json 2>/dev/null >/dev/full"#, 69, ""),
    (#"exec "$1" topology --config "$2" >/dev/full"#, 69, "standard output"),
    (#"exec "$1" feedback --config "$2" >/dev/full"#, 69, "standard output"),
    (#"exec "$1" help >/dev/full"#, 69, "standard output"),
    (#"exec "$1" help >&-"#, 69, "standard output is closed"),
    (#"ulimit -Sn 7; exec "$1" worker --config "$2" --until-empty"#, 0, ""),
    (#"ulimit -n 14; exec "$1" worker --config "$2" --until-empty"#, 0, ""),
  ]

  @Test("closed or full standard streams harm no delivered request")
  func standardStreams() throws {
    let site = try Site()
    try site.startSimulator(script: [token(0): ["status": 410, "reason": "Unregistered"]])
    try site.declareTopology()
    for (index, stream) in Self.streams.enumerated() {
      try site.send(tokens: (index * 10..<index * 10 + 10).map(token))
      let child = try ChildProcess(
        ["/bin/sh", "-c", stream.line, "sh", Program.path, site.file("pushfleet.json5")], environment: Site.environment,
        output: site.file("shell.log"))
      let status = child.wait()
      let output = try String(contentsOfFile: site.file("shell.log"), encoding: .utf8)
      #expect(
        status == stream.status && (stream.said.isEmpty || output.contains(stream.said)), "\(stream.line): \(status) \(output)")
    }
    try site.drain()
    #expect(try site.deliveries().values.allSatisfy { $0 == 1 } && site.deliveries().count == Self.streams.count * 10 - 1)
    #expect(try site.depths(["feedback"]) == [1])
  }

  @Test("feedback --follow prints events as they come, one object a line, and acknowledges printed ones")
  func followFeedback() throws {
    let site = try Site()
    try site.startSimulator(script: ["*": ["status": 410, "reason": "Unregistered"]])
    try site.declareTopology()
    let reader = try site.start(["feedback", "--config", site.file("pushfleet.json5"), "--follow"])
    for device in [token(1), token(2)] {
      try site.send(tokens: [device])
      try site.drain()
      #expect(reader.waitForOutput(device, seconds: 90))
    }
    reader.signal(15)
    reader.wait()
    #expect(Site.objects(reader.outputSoFar).compactMap { $0["token"] as? String } == [token(1), token(2)])
    let rest = try site.run(["feedback", "--config", site.file("pushfleet.json5")])
    #expect(rest.status == 0 && rest.output.isEmpty)
  }
}
