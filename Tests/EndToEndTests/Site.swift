import Foundation
import TestSupport

/// A private installation for one test: own queues on the shared broker, own simulator, own configuration, in a folder of its own.
final class Site {
  static let app = "com.example.app"

  let broker: Broker
  let prefix: String
  let folder: URL
  let certificates: TestCertificates
  private(set) var simulator: ChildProcess?
  private(set) var port = 0
  private var children: [ChildProcess] = []

  init(broker: Broker? = nil) throws {
    self.broker = try broker ?? .shared
    prefix = "t" + UUID().uuidString.prefix(8).lowercased()
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("pushfleet-\(prefix)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    certificates = try TestCertificates.make()
  }

  deinit {
    for child in children { child.end() }
    try? FileManager.default.removeItem(at: folder)
  }

  // MARK: parts

  /// Starts the simulator and writes a configuration that leads to it.
  func startSimulator(script: [String: Any] = [:], options: [String] = [], settings: String = "") throws {
    let journal = file("journal.ndjson")
    try JSONSerialization.data(withJSONObject: script).write(to: URL(fileURLWithPath: file("script.json")))
    let child = try start(
      [
        "simulate", "apns", "--listen", "127.0.0.1:\(port)", "--certificate", certificates.server, "--key",
        certificates.serverKey,
        "--script", file("script.json"), "--journal", journal,
      ] + options)
    let mark = "listens on 127.0.0.1:"
    guard child.waitForOutput(mark, seconds: 30),
      let line = child.outputSoFar.split(separator: "\n").first(where: { $0.contains(mark) }),
      let port = Int(line.split(separator: ":").last ?? "")
    else { throw Broken("the simulator did not start: \(child.outputSoFar)") }
    simulator = child
    self.port = port
    try configure(port: port, settings: settings)
  }

  func configure(port: Int, settings: String = "") throws {
    self.port = port
    try """
    {
      broker: "\(broker.uri)",
      prefix: "\(prefix)",
      \(settings)
      apps: { "\(Self.app)": { apns: {
        key: "\(certificates.p8)", keyID: "ABC123DEFG", teamID: "DEF123GHIJ", topic: "\(Self.app)",
        endpoint: "https://127.0.0.1:\(port)", ca: "\(certificates.authority)" } } },
    }
    """.write(toFile: file("pushfleet.json5"), atomically: true, encoding: .utf8)
  }

  func file(_ name: String) -> String { folder.appendingPathComponent(name).path }

  // MARK: commands

  static let program = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent(
    "pushfleet"
  ).path

  /// Starts a command that goes on; it ends with the site.
  @discardableResult
  func start(_ words: [String], environment: [String: String] = [:]) throws -> ChildProcess {
    let child = try ChildProcess([Self.program] + words, environment: Self.environment.merging(environment) { $1 }, output: nil)
    children.append(child)
    return child
  }

  func startWorker(_ options: [String] = []) throws -> ChildProcess {
    let worker = try start(["worker", "--config", file("pushfleet.json5")] + options)
    guard worker.waitForOutput("\"consuming\"", seconds: 30) else { throw Broken("no worker: \(worker.outputSoFar)") }
    return worker
  }

  struct Ended {
    var status: Int32
    var output: String
  }

  /// Runs a command to its end.
  @discardableResult
  func run(_ words: [String], environment: [String: String] = [:]) throws -> Ended {
    let log = file("run-\(UUID().uuidString)")
    let child = try ChildProcess([Self.program] + words, environment: Self.environment.merging(environment) { $1 }, output: log)
    let status = child.wait()
    return Ended(status: status, output: (try? String(contentsOfFile: log, encoding: .utf8)) ?? "")
  }

  /// Delivers everything that waits, to the last retry.
  @discardableResult
  func drain() throws -> Ended {
    let ended = try run(["worker", "--config", file("pushfleet.json5"), "--until-empty"])
    guard ended.status == 0 else { throw Broken("the worker ended with \(ended.status): \(ended.output)") }
    return ended
  }

  func declareTopology() throws {
    let ended = try run(["topology", "--config", file("pushfleet.json5")])
    guard ended.status == 0 else { throw Broken("no topology: \(ended.output)") }
  }

  private static let environment = [
    "PATH": "/usr/bin:/bin", "SWIFT_BACKTRACE": "enable=no",
    "LD_LIBRARY_PATH": ProcessInfo.processInfo.environment["LD_LIBRARY_PATH"] ?? "",
  ]

  // MARK: foreign clients

  /// Publishes with Python's pika: each message's body (text as it is, anything else as JSON) and properties.
  func publish(_ messages: [(body: Any, properties: [String: Any])], to key: String = "normal") throws {
    var lines = Data()
    for message in messages {
      let line: [String: Any] = [
        "body": message.body, "properties": message.properties, "exchange": "\(prefix).send", "routing_key": key,
      ]
      lines += try JSONSerialization.data(withJSONObject: line) + Data("\n".utf8)
    }
    let input = file("publish-\(UUID().uuidString)")
    try lines.write(to: URL(fileURLWithPath: input))
    _ = try python("amqp_peer.py", ["publish"], input: input)
  }

  struct Message {
    var body: String
    var properties: [String: Any]
    var json: [String: Any] { (try? JSONSerialization.jsonObject(with: Data(body.utf8))) as? [String: Any] ?? [:] }
    var headers: [String: Any] { properties["headers"] as? [String: Any] ?? [:] }
    func header(_ name: String) -> String? { headers[name].map { "\($0)" } }
  }

  /// Takes all messages out of one of the site's queues with Python's pika.
  func take(_ queue: String) throws -> [Message] { try takeAll(from: "\(prefix).\(queue)") }

  func takeAll(from queue: String) throws -> [Message] {
    try python("amqp_peer.py", ["consume", queue]).split(separator: "\n").map { line in
      guard let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any],
        let body = object["body"] as? String
      else { throw Broken("unreadable: \(line)") }
      return Message(body: body, properties: object["properties"] as? [String: Any] ?? [:])
    }
  }

  func python(_ script: String, _ words: [String], input: String? = nil) throws -> String {
    let path = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Support/\(script)").path
    let log = file("python-\(UUID().uuidString)")
    let child = try ChildProcess(
      ["/usr/bin/python3", path, "--broker", broker.uri] + words, environment: ["PATH": "/usr/bin:/bin"], output: log,
      input: input.flatMap { FileHandle(forReadingAtPath: $0) })
    let status = child.wait()
    let output = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
    guard status == 0 else { throw Broken("\(script) \(words) ended with \(status): \(output)") }
    return output
  }

  // MARK: what the phones got

  struct Push {
    var token: String
    var status: Int?
    var headers: [String: String]
    var payload: [String: Any]
  }

  /// What the simulator has journaled so far.
  func pushes() throws -> [Push] {
    let text = (try? String(contentsOfFile: file("journal.ndjson"), encoding: .utf8)) ?? ""
    return try text.split(separator: "\n").map { line in
      guard let entry = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] else {
        throw Broken("\(line)")
      }
      return Push(
        token: entry["token"] as? String ?? "", status: (entry["answer"] as? [String: Any])?["status"] as? Int,
        headers: (entry["headers"] as? [String: Any] ?? [:]).compactMapValues { $0 as? String },
        payload: entry["payload"] as? [String: Any] ?? [:])
    }
  }
}

/// A test's surroundings did not come up.
struct Broken: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// A device token of 64 digits made from a number.
func token(_ number: Int) -> String {
  String(repeating: "0", count: 64 - String(number, radix: 16).count) + String(number, radix: 16)
}
