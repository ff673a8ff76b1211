import Foundation
import TestSupport

/// A private installation for one test: own queues on the shared broker, own simulator, configuration and folder.
final class Site {
  static let app = "com.example.app"

  let broker: Broker
  private let isBrokerShared: Bool
  let prefix: String
  let folder: URL
  let certificates: TestCertificates
  /// The broker's address in the configuration.
  var brokerURI: String
  private(set) var simulator: ChildProcess?
  private(set) var port = 0
  private var children: [ChildProcess] = []

  /// - Parameter prefix: a prefix that the broker has for this site alone; nil for a new one.
  init(broker: Broker? = nil, prefix: String? = nil) throws {
    self.broker = try broker ?? .shared
    isBrokerShared = broker == nil
    brokerURI = self.broker.uri
    let name = "t" + UUID().uuidString.prefix(8).lowercased()
    self.prefix = prefix ?? name
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("pushfleet-\(name)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    certificates = try TestCertificates.make()
  }

  deinit {
    for child in children { child.end() }
    // RabbitMQ looks after each quorum queue every few seconds, which adds up.
    if isBrokerShared { try? broker.deleteQueues(prefix: "\(prefix).") }
    try? FileManager.default.removeItem(at: folder)
  }

  func file(_ name: String) -> String { folder.appendingPathComponent(name).path }

  @discardableResult
  func write(_ text: String, to name: String) throws -> String {
    try text.write(toFile: file(name), atomically: false, encoding: .utf8)
    return file(name)
  }

  // MARK: parts

  /// Starts the simulator and writes a configuration that leads to it.
  ///
  /// - Parameter identity: the server's certificate and key, unless it is the usual one.
  func startSimulator(
    script: [String: Any] = [:], options: [String] = [], settings: String = "", apns: String = "",
    identity: (certificate: String, key: String)? = nil
  ) throws {
    let (child, port) = try startAPNs("journal", port: port, script: script, options: options, identity: identity)
    simulator = child
    try configure(port: port, settings: settings, apns: apns)
  }

  /// Starts a simulator of APNs whose journal is `<name>.ndjson`, on a port of its own unless one is given.
  func startAPNs(
    _ name: String, port: Int = 0, script: [String: Any] = [:], options: [String] = [],
    identity: (certificate: String, key: String)? = nil
  ) throws -> (simulator: ChildProcess, port: Int) {
    // A port that the system chose may belong to another test's server while this one is stopped.
    let port = port == 0 ? Int(try FreePorts.take(1)[0]) : port
    let scriptFile = file("\(name)-script.json")
    try JSONSerialization.data(withJSONObject: script).write(to: URL(fileURLWithPath: scriptFile))
    let child = try start(
      [
        "simulate", "apns", "--listen", "127.0.0.1:\(port)", "--certificate", identity?.certificate ?? certificates.server,
        "--key", identity?.key ?? certificates.serverKey, "--script", scriptFile, "--journal", file("\(name).ndjson"),
      ] + options)
    let mark = "listens on 127.0.0.1:"
    guard child.waitForOutput(mark, seconds: 90),
      let line = child.outputSoFar.split(separator: "\n").first(where: { $0.contains(mark) }),
      let port = Int(line.split(separator: ":").last ?? "")
    else { throw Broken("the simulator did not start: \(child.outputSoFar)") }
    return (child, port)
  }

  /// Ends the simulator; the next one listens on the same port.
  func stopSimulator() {
    simulator?.end()
    simulator = nil
  }

  /// - Parameters:
  ///   - settings: further lines of the configuration.
  ///   - apns: further lines of the app's APNs settings.
  func configure(port: Int, settings: String = "", apns: String = "") throws {
    self.port = port
    try write(
      """
      {
        broker: "\(brokerURI)",
        prefix: "\(prefix)",
        \(settings)
        apps: { "\(Self.app)": { apns: {
          key: "\(certificates.p8)", keyID: "ABC123DEFG", teamID: "DEF123GHIJ", topic: "\(Self.app)", \(apns)
          endpoint: "https://127.0.0.1:\(port)", ca: "\(certificates.authority)" } } },
      }
      """, to: "pushfleet.json5")
  }

  /// Starts Python's HTTP/2 server in the provider's place and writes a configuration that leads to it.
  func startForeignProvider(_ options: [String] = [], settings: String = "", apns: String = "") throws -> ChildProcess {
    let (child, port) = try startServer("h2_server.py", options)
    try configure(port: port, settings: settings, apns: apns)
    return child
  }

  /// Starts Python's channel management in APNs' place and writes a configuration that leads to it.
  func startForeignChannels() throws -> ChildProcess {
    let (child, port) = try startServer("channel_server.py", [])
    try configure(port: port, apns: #"channelsEndpoint: "https://127.0.0.1:\#(port)","#)
    return child
  }

  /// Starts Python's FCM with its token endpoint, and writes a configuration that leads to it.
  func startForeignFCM(script: [String: Any], _ options: [String] = [], settings: String = "") throws -> ChildProcess {
    let account = [
      "type": "service_account", "project_id": "example-project", "private_key_id": "0123abcd",
      "private_key": try String(contentsOfFile: certificates.rsaKey, encoding: .utf8),
      "client_email": "sender@example-project.iam.gserviceaccount.com", "token_uri": "https://oauth2.googleapis.com/token",
    ]
    try JSONSerialization.data(withJSONObject: account).write(to: URL(fileURLWithPath: file("account.json")))
    let answers = String(decoding: try JSONSerialization.data(withJSONObject: script), as: UTF8.self)
    let (child, port) = try startServer(
      "fcm_server.py",
      [
        "--account", account["client_email"] ?? "", "--account-key", certificates.rsaKey, "--key-id", "0123abcd",
        "--project", "example-project", "--audience", "https://oauth2.googleapis.com/token", "--script", answers,
      ] + options)
    try write(
      """
      {
        broker: "\(brokerURI)",
        prefix: "\(prefix)",
        \(settings)
        apps: { "\(Self.app)": { fcm: {
          serviceAccount: "account.json", endpoint: "https://127.0.0.1:\(port)", ca: "\(certificates.authority)" } } },
      }
      """, to: "pushfleet.json5")
    return child
  }

  private func startServer(_ script: String, _ options: [String]) throws -> (ChildProcess, port: Int) {
    let input = Pipe()
    let child = try ChildProcess(
      [
        "/usr/bin/python3", Self.support(script), "--certificate", certificates.server, "--key", certificates.serverKey,
      ] + options, environment: ["PATH": "/usr/bin:/bin"], output: nil, input: input.fileHandleForReading)
    children.append(child)
    openPipes.append(input)
    guard child.waitForLines(1, seconds: 90), let first = Self.objects(child.outputSoFar).first,
      let port = first["port"] as? Int
    else { throw Broken("\(script) did not start: \(child.outputSoFar)") }
    return (child, port)
  }

  /// Starts Python's push service for browsers, which prints each push.
  func startBrowsers(_ count: Int, script: [String: Any] = [:]) throws -> Browsers {
    let answers = String(decoding: try JSONSerialization.data(withJSONObject: script), as: UTF8.self)
    let (child, port) = try startServer("webpush_server.py", ["--subscriptions", "\(count)", "--script", answers])
    let first = Self.objects(child.outputSoFar).first
    return Browsers(service: child, port: port, subscriptions: first?["subscriptions"] as? [[String: Any]] ?? [])
  }

  private var openPipes: [Pipe] = []

  /// Starts Python's collector of spans, which prints its port and what it takes.
  func startCollector(_ options: [String] = []) throws -> (process: ChildProcess, port: Int) {
    let child = try startForeign(["/usr/bin/python3", Self.support("otlp_collector.py")] + options)
    guard child.waitForLines(1, seconds: 90), let port = Int(child.outputSoFar.prefix { $0.isNumber }) else {
      throw Broken("no collector: \(child.outputSoFar)")
    }
    return (child, port)
  }

  /// Starts a program that is not ours; it ends with the site.
  func startForeign(_ command: [String]) throws -> ChildProcess {
    let child = try ChildProcess(command, environment: ["PATH": "/usr/bin:/bin"], output: nil)
    children.append(child)
    return child
  }

  // MARK: commands

  static func support(_ script: String) -> String {
    URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Support/\(script)").path
  }

  /// Starts a command that keeps running; it ends with the site.
  @discardableResult
  func start(_ words: [String], environment: [String: String] = [:], input: FileHandle? = nil) throws -> ChildProcess {
    let child = try ChildProcess(
      [Program.path] + words, environment: Self.environment.merging(environment) { $1 }, output: nil, input: input)
    children.append(child)
    return child
  }

  /// Starts a worker; it consumes when this returns.
  func startWorker(_ options: [String] = []) throws -> ChildProcess {
    let worker = try start(["worker", "--config", file("pushfleet.json5")] + options)
    guard worker.waitForOutput(#""consuming""#, seconds: 180) else { throw Broken("no worker: \(worker.outputSoFar)") }
    return worker
  }

  struct Ended {
    var status: Int32
    /// Standard output and error together.
    var output: String
  }

  /// Runs a command to its end.
  @discardableResult
  func run(_ words: [String], environment: [String: String] = [:], input: String? = nil) throws -> Ended {
    let log = file("run-\(UUID().uuidString)")
    let child = try ChildProcess(
      [Program.path] + words, environment: Self.environment.merging(environment) { $1 }, output: log,
      input: input.flatMap { FileHandle(forReadingAtPath: $0) })
    let status = child.wait()
    let output = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
    return Ended(status: status, output: output)
  }

  /// Delivers all waiting requests, to the last retry; returns the worker's totals.
  @discardableResult
  func drain(environment: [String: String] = [:]) throws -> [String: Any] {
    let words = ["worker", "--config", file("pushfleet.json5"), "--until-empty", "--json"]
    let ended = try run(words, environment: environment)
    guard ended.status == 0, let figures = Self.objects(ended.output).last else {
      throw Broken("the worker ended with \(ended.status): \(ended.output)")
    }
    return figures
  }

  func declareTopology() throws {
    let ended = try run(["topology", "--config", file("pushfleet.json5")])
    guard ended.status == 0 else { throw Broken("no topology: \(ended.output)") }
  }

  /// Publishes a plain request for each token with `pushfleet send`.
  func send(tokens: [String], app: String? = nil) throws {
    let lines = tokens.map { #"{"to":"\#($0)","notification":{"body":"Hello"}}"# }
    try send(lines: lines, app: app)
  }

  /// - Parameter app: needed if several are configured.
  func send(lines: [String], app: String? = nil) throws {
    let file = try write(lines.joined(separator: "\n"), to: "send-\(UUID().uuidString).ndjson")
    let ended = try run(["send", "--config", self.file("pushfleet.json5")] + (app.map { ["--app", $0] } ?? []) + [file])
    guard ended.status == 0 else { throw Broken("send ended with \(ended.status): \(ended.output)") }
  }

  /// The number of rounds of a random test, from the environment's `PUSHFLEET_TEST_` and the name, for long runs by hand.
  static func rounds(_ name: String, usually count: Int) -> Int {
    ProcessInfo.processInfo.environment["PUSHFLEET_TEST_\(name)"].flatMap(Int.init) ?? count
  }

  static let environment = [
    "PATH": "/usr/bin:/bin", "SWIFT_BACKTRACE": "enable=no",
    "LD_LIBRARY_PATH": ProcessInfo.processInfo.environment["LD_LIBRARY_PATH"] ?? "",
  ]

  /// The lines that are JSON objects.
  static func objects(_ text: String) -> [[String: Any]] { objects(Data(text.utf8)) }

  static func objects(_ text: Data) -> [[String: Any]] {
    lines(text).compactMap { try? JSONSerialization.jsonObject(with: $0) as? [String: Any] }
  }

  /// The lines that aren't empty. In a debug build, `split` takes longer than everything else that a test does with a journal.
  private static func lines(_ text: Data) -> [Data] {
    var lines: [Data] = []
    var rest = text
    while !rest.isEmpty {
      let length = rest.withUnsafeBytes { bytes in
        memchr(bytes.baseAddress!, Int32(UInt8(ascii: "\n")), bytes.count).map { UnsafeRawPointer($0) - bytes.baseAddress! }
      }
      let line = rest.prefix(length ?? rest.count)
      if !line.isEmpty { lines.append(line) }
      rest = rest.dropFirst(line.count + 1)
    }
    return lines
  }

  // MARK: foreign clients

  /// Publishes with Python's pika: each message's body (text as it is, anything else as JSON) and properties.
  ///
  /// - Parameter isEscaped: text holds Python's backslash escapes, so that it can be any bytes.
  func publish(_ messages: [(body: Any, properties: [String: Any])], to key: String = "normal", isEscaped: Bool = false) throws
  {
    try publish(
      lines: messages.map {
        [
          "body": $0.body, "properties": $0.properties, "exchange": "\(prefix).send", "routing_key": key, "bytes": isEscaped,
        ]
      })
  }

  /// Publishes to the registry's queue.
  func publishChanges(_ changes: [(body: [String: Any], properties: [String: Any])]) throws {
    try publish(
      lines: changes.map {
        ["body": $0.body, "properties": $0.properties, "exchange": "", "routing_key": "\(prefix).registry"]
      })
  }

  /// Gives `amqp_peer.py publish` one message a line.
  @discardableResult
  func publish(lines: [[String: Any]], _ options: [String] = []) throws -> String {
    try peer(["publish"] + options, input: try writeLines(lines))
  }

  /// The same in the background; the program ends with 0 when each message was routed and confirmed.
  func startPublishing(lines: [[String: Any]]) throws -> ChildProcess {
    let child = try ChildProcess(
      ["/usr/bin/python3", Self.support("amqp_peer.py"), "--broker", broker.uri, "publish"],
      environment: ["PATH": "/usr/bin:/bin"], output: nil, input: FileHandle(forReadingAtPath: try writeLines(lines)))
    children.append(child)
    return child
  }

  func writeLines(_ lines: [[String: Any]]) throws -> String {
    var input = Data()
    // The order of a dictionary's keys depends on its address, and another order is another body.
    for line in lines {
      input += try JSONSerialization.data(withJSONObject: line, options: .sortedKeys) + Data("\n".utf8)
    }
    let file = file("publish-\(UUID().uuidString)")
    try input.write(to: URL(fileURLWithPath: file))
    return file
  }

  struct Message {
    var body: String
    var properties: [String: Any]
    var isRedelivered: Bool
    var json: [String: Any] { (try? JSONSerialization.jsonObject(with: Data(body.utf8))) as? [String: Any] ?? [:] }
    var headers: [String: Any] { properties["headers"] as? [String: Any] ?? [:] }
    var id: String { properties["message_id"] as? String ?? "" }
    func header(_ name: String) -> String? { headers[name].map { "\($0)" } }
  }

  /// Receives messages from one of the site's queues with Python's pika: all that are ready, or `count` if given.
  func take(_ queue: String, count: Int = 0) throws -> [Message] { try takeAll(from: "\(prefix).\(queue)", count: count) }

  func takeAll(from queue: String, count: Int = 0) throws -> [Message] {
    let waiting = count == 0 ? [] : ["--count", "\(count)", "--wait", "90"]
    return try Self.messages(try peer(["consume", queue] + waiting))
  }

  /// The messages that `amqp_peer.py` has printed.
  static func messages(_ output: String) throws -> [Message] {
    try lines(Data(output.utf8)).map { line in
      guard let object = try JSONSerialization.jsonObject(with: line) as? [String: Any], let body = object["body"] as? String
      else {
        throw Broken("unreadable: \(String(decoding: line, as: UTF8.self))")
      }
      return Message(
        body: body, properties: object["properties"] as? [String: Any] ?? [:],
        isRedelivered: object["redelivered"] as? Bool ?? false)
    }
  }

  /// Ready messages of the site's queues.
  func depths(_ queues: [String]) throws -> [Int] {
    try broker.depths(of: queues.map { "\(prefix).\($0)" })
  }

  /// Ready requests in an application's hold queue; 0 without such a queue, because it is declared when first needed.
  func held(_ app: String) -> Int { (try? depths(["hold.\(app)"]).first) ?? 0 }

  /// Runs `amqp_peer.py`, which uses Python's pika.
  /// - Parameter uri: the broker's address with another user; nil for the default.
  @discardableResult
  func peer(_ words: [String], input: String? = nil, by uri: String? = nil) throws -> String {
    try AMQPPeer.shared.get().run(["--broker", uri ?? broker.uri] + words, input: input)
  }

  /// Runs a program that is not ours to its end.
  @discardableResult
  func foreign(_ command: [String], input: String? = nil) throws -> String {
    let log = file("foreign-\(UUID().uuidString)")
    let child = try ChildProcess(
      command, environment: ["PATH": "/usr/bin:/bin"], output: log, input: input.flatMap { FileHandle(forReadingAtPath: $0) })
    let status = child.wait()
    let output = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
    guard status == 0 else { throw Broken("\(command) ended with \(status): \(output)") }
    return output
  }

  // MARK: what the phones got

  struct Push {
    var token: String
    /// Nil if a fault replaced the answer.
    var status: Int?
    var connection: Int
    var headers: [String: String]
    var payload: [String: Any]
    var violations: [String]
  }

  /// The pushes that were read from the journal, and their bytes. Simulators only append to it.
  private var journaled: (bytes: UInt64, pushes: [Push]) = (0, [])

  /// What the simulator has journaled so far.
  func pushes() throws -> [Push] {
    guard let journal = FileHandle(forReadingAtPath: file("journal.ndjson")) else { return [] }
    try journal.seek(toOffset: journaled.bytes)
    let fresh = try journal.readToEnd() ?? Data()
    let whole = fresh.prefix(upTo: fresh.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? fresh.startIndex)
    journaled.bytes += UInt64(whole.count)
    journaled.pushes += Self.objects(whole).filter { $0["token"] != nil }.map { entry in
      Push(
        token: entry["token"] as? String ?? "", status: (entry["answer"] as? [String: Any])?["status"] as? Int,
        connection: entry["connection"] as? Int ?? 0,
        headers: (entry["headers"] as? [String: Any] ?? [:]).compactMapValues { $0 as? String },
        payload: entry["payload"] as? [String: Any] ?? [:], violations: entry["violations"] as? [String] ?? [])
    }
    return journaled.pushes
  }

  /// When the simulator received each of these entries, in Unix seconds.
  func times(in journal: String, where isMeant: ([String: Any]) -> Bool) throws -> [Double] {
    let format = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
    return try Self.objects(try String(contentsOfFile: file(journal), encoding: .utf8)).filter(isMeant).map {
      try format.parse($0["time"] as? String ?? "").timeIntervalSince1970
    }
  }

  /// The number of each device's pushes.
  func deliveries() throws -> [String: Int] {
    try pushes().reduce(into: [:]) { counts, push in if push.status == 200 { counts[push.token, default: 0] += 1 } }
  }

  /// Follows the journal, line by line, for tests that wait for pushes.
  func followJournal(_ name: String = "journal.ndjson") throws -> ChildProcess {
    let child = try ChildProcess(
      ["/usr/bin/tail", "-n", "+1", "-F", file(name)], environment: ["PATH": "/usr/bin:/bin"], output: nil)
    children.append(child)
    return child
  }
}

/// A push service with subscriptions.
struct Browsers {
  let service: ChildProcess
  let port: Int
  /// As browsers give them to a page.
  let subscriptions: [[String: Any]]

  /// True if http-ece and py-vapid are there, which deploy/test fetches.
  static let arePeersInstalled = FileManager.default.fileExists(
    atPath: URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../.build/pypi").path)

  func endpoint(_ number: Int) -> String { subscriptions[number]["endpoint"] as? String ?? "" }

  /// The target of a subscription that isn't registered.
  func target(_ number: Int) throws -> String {
    "webpush:"
      + (try JSONSerialization.data(withJSONObject: subscriptions[number])).base64EncodedString()
      .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  /// What the service has received so far.
  var pushes: [[String: Any]] { Site.objects(service.outputSoFar).filter { $0["path"] != nil } }

  /// The decrypted messages by subscription.
  var plaintexts: [Int: [[String: Any]]] {
    pushes.reduce(into: [:]) { texts, push in
      guard let number = push["number"] as? Int, let text = push["plaintext"] as? String else { return }
      texts[number, default: []] += Site.objects(text)
    }
  }
}

/// A test's environment did not start.
struct Broken: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// A device token of 64 digits made from a number.
func token(_ number: Int) -> String {
  String(repeating: "0", count: 64 - String(number, radix: 16).count) + String(number, radix: 16)
}
