import Foundation
import TestSupport
import Testing

/// Where a test's registry is.
enum RegistryKind: String, CaseIterable, CustomTestStringConvertible {
  case sqlite, postgres

  static let all: [RegistryKind] = Postgres.shared == nil ? [.sqlite] : allCases
  var testDescription: String { rawValue }

  /// The configuration's value for an empty registry.
  func make() throws -> String {
    switch self {
    case .sqlite: "sqlite:registry.db"
    case .postgres: try Postgres.shared?.get().makeDatabase() ?? ""
    }
  }
}

/// A fleet with a registry, and both providers simulated.
extension Site {
  static let retries = #"retry: { steps: ["200ms", "1s"], attempts: 9 }, results: "all","#

  /// - Parameter apps: further lines of the app's settings.
  func startFleet(
    _ registry: String = "sqlite:registry.db", script: [String: Any] = [:], options: [String] = [], settings: String = "",
    apps: String = ""
  ) throws {
    try startSimulator(script: script, options: options)
    try configureFleet(registry, settings: settings, apps: apps)
    try declareTopology()
  }

  func configureFleet(_ registry: String, settings: String = "", apps: String = "") throws {
    try write(
      """
      {
        broker: "\(brokerURI)", prefix: "\(prefix)", registry: "\(registry)",
        \(Self.retries) \(settings)
        apps: { "\(Self.app)": {
          apns: \(apns()), \(apps)
        } },
      }
      """, to: "pushfleet.json5")
  }

  func apns(_ fields: String = "", topic: String = Site.app, port: Int? = nil) -> String {
    """
    { key: "\(certificates.p8)", keyID: "ABC123DEFG", teamID: "DEF123GHIJ", topic: "\(topic)", \(fields)
      endpoint: "https://127.0.0.1:\(port ?? self.port)", ca: "\(certificates.authority)" }
    """
  }

  /// Starts FCM's simulator, whose journal is `fcm.ndjson`.
  /// - Returns: the app's settings for it.
  func startFCM(_ options: [String] = []) throws -> String {
    let child = try start(
      [
        "simulate", "fcm", "--listen", "127.0.0.1:0", "--certificate", certificates.server, "--key", certificates.serverKey,
        "--journal", file("fcm.ndjson"),
      ] + options)
    guard child.waitForOutput("listens on 127.0.0.1:", seconds: 90),
      let port = Int(child.outputSoFar.split(separator: ":").last?.trimmingCharacters(in: .whitespacesAndNewlines) ?? "")
    else { throw Broken("the simulator did not start: \(child.outputSoFar)") }
    let account: [String: Any] = [
      "type": "service_account", "project_id": "example-project", "private_key_id": "0123abcd",
      "private_key": try String(contentsOfFile: certificates.rsaKey, encoding: .utf8),
      "client_email": "sender@example-project.iam.gserviceaccount.com", "token_uri": "https://127.0.0.1:\(port)/token",
    ]
    try JSONSerialization.data(withJSONObject: account).write(to: URL(fileURLWithPath: file("account.json")))
    return """
      fcm: { serviceAccount: "account.json", endpoint: "https://127.0.0.1:\(port)", ca: "\(certificates.authority)" },
      """
  }

  // MARK: the registry

  /// Stores iPhones, with a token for each number and further fields of the change.
  func importDevices(
    _ numbers: some Sequence<Int>, _ fields: String, token: (Int) -> String = EndToEndTests.token
  ) throws {
    let lines = numbers.map { #"{"platform":"apns","token":"\#(token($0))",\#(fields)}"# }
    let rows = try write(lines.joined(separator: "\n"), to: "devices.ndjson")
    let ended = try run(["devices", "import", "--config", file("pushfleet.json5"), rows])
    guard ended.status == 0 else { throw Broken("import ended with \(ended.status): \(ended.output)") }
  }

  /// Sends changes through the registry's queue and returns the answers in the changes' order.
  func change(_ changes: [[String: Any]]) throws -> [[String: Any]] {
    try askForChanges(changes)
    let answers = try takeAll(from: "\(prefix).answers", count: changes.count)
    let sorted = answers.sorted {
      Int("\($0.properties["correlation_id"] ?? "")") ?? 0 < Int("\($1.properties["correlation_id"] ?? "")") ?? 0
    }
    return sorted.map(\.json)
  }

  /// Sends changes whose answers go to the queue `answers`.
  func askForChanges(_ changes: [[String: Any]]) throws {
    try peer(["declare", "\(prefix).answers"])
    try publishChanges(
      changes.enumerated().map { ($1, ["reply_to": "\(prefix).answers", "correlation_id": "\($0)"]) })
  }

  /// All campaigns as `pushfleet campaigns` lists them, by message id.
  func campaigns() throws -> [String: [String: Any]] {
    let ended = try run(["campaigns", "--config", file("pushfleet.json5"), "--json"])
    guard ended.status == 0 else { throw Broken("campaigns ended with \(ended.status): \(ended.output)") }
    return Dictionary(
      Self.objects(ended.output).map { ($0["message_id"] as? String ?? "", $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// `pushfleet campaigns pause|resume|cancel` of a message's campaign.
  func steer(_ word: String, _ messageID: String) throws {
    let id = try campaigns()[messageID]?["id"] as? String ?? ""
    let ended = try run(["campaigns", word, "--config", file("pushfleet.json5"), id])
    guard ended.status == 0 else { throw Broken("\(word) ended with \(ended.status): \(ended.output)") }
  }

  /// A broadcast to the topic `all`.
  func broadcast(_ messageID: String, to target: [String: Any] = ["to": "/topics/all"]) throws {
    try publish([(target.merging(["data": ["m": messageID]]) { $1 }, ["message_id": messageID])])
  }

  /// Success and failure of each message's result, and the number of its results.
  func results() throws -> [String: (success: Int, failure: Int, count: Int)] {
    try take("results").reduce(into: [:]) { results, message in
      let earlier = results[message.id]?.count ?? 0
      results[message.id] = (
        message.json["success"] as? Int ?? -1, message.json["failure"] as? Int ?? -1, earlier + 1
      )
    }
  }

  /// The number of each iPhone's pushes of a message.
  func deliveries(of messageID: String) throws -> [String: Int] {
    try pushes().reduce(into: [:]) { counts, push in
      if push.status == 200, push.payload["m"] as? String == messageID { counts[push.token, default: 0] += 1 }
    }
  }
}

extension Site {
  /// Publishes requests one after the other.
  /// - Returns: when each was handed to the broker, in unix milliseconds.
  func publishTimed(_ requests: [[String: Any]], to key: String) throws -> [Int] {
    let times = try publish(
      lines: requests.map { ["body": $0, "exchange": "\(prefix).send", "routing_key": key] }, ["--times"])
    return times.split(separator: "\n").compactMap { Int($0) }
  }

  /// When the simulator had received each push of a message, in unix milliseconds and in the order of arrival.
  func arrivals(of messageID: String) throws -> [Int] {
    let format = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
    return try Self.objects(try String(contentsOfFile: file("journal.ndjson"), encoding: .utf8)).compactMap { entry in
      guard (entry["payload"] as? [String: Any])?["m"] as? String == messageID, let time = entry["time"] as? String else {
        return nil
      }
      return Int((try Date(time, strategy: format).timeIntervalSince1970 * 1000).rounded())
    }
  }
}
