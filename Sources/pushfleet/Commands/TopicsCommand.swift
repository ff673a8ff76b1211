import DeviceRegistry
import Foundation
import PushCore

enum TopicsCommand: Command {
  static let page = CommandPage(
    "topics", "list topics, subscribe devices and unsubscribe them",
    forms: [
      .action("list", "--config", ["--app"], ["--json"]),
      .action("subscribe|unsubscribe", "--config", ["--app"], ["--json"], "TOPIC", "DEVICE..."),
    ],
    """
    A DEVICE is a registration or a provider's token; - reads devices from standard input, one per line. A device that isn't
    registered is reported with its place in the list; the others are processed (exit status 65).
    """,
    [
      .config(", which names the registry"),
      .option("app", "APP", "the application; may be left out when one is configured. list without it shows all of them"),
      .json("list: one JSON object per topic; otherwise the registry's answer to each thousand devices"),
    ],
    example: "pushfleet topics subscribe --config pushfleet.json5 news pf1r~00000000000000000000000000")

  static func run(_ options: Options) throws {
    let word = options.action
    if word == "list" { return try list(options) }
    guard options.operands.count >= 2 else { throw CommandFailure(.usage, "name a topic and at least one device, or -") }
    let session = try RegistrySession(options, isReading: word == "unsubscribe")
    let app = try session.configuration.app(options)
    let interruption = try Interruption()
    let devices = try RegistryNames.read(options.operands.dropFirst(), unless: interruption)
    var failures = 0
    let batch = session.configuration.registryLimits.batch
    for start in stride(from: 0, to: devices.count, by: batch) {
      guard !interruption.hasCome else {
        let done = "\(start - failures) of \(devices.count) \(word)d"
        throw CommandFailure(.interrupted, "interrupted: \(done); the same command again does no harm")
      }
      let tokens = devices[start...].prefix(batch).map { Array($0.utf8) }
      let change: JSONObject = ["op": word, "app": app, "topic": options.operands[0], "tokens": tokens]
      guard case .results(let results) = try session.apply(change, options) else { continue }
      for (index, error) in results.enumerated() {
        guard let error else { continue }
        failures += 1
        let hint = error == .notFound ? ": no such device is registered; a token may be named apns:… or fcm:…" : ""
        Terminal.notice("device \(start + index + 1): \(error.rawValue)\(hint)")
      }
    }
    if !options.asJSON { Terminal.notice("\(devices.count - failures) \(word)d") }
    if failures > 0 { throw CommandFailure(.badInput, "\(failures) of \(devices.count) could not be \(word)d") }
  }

  private static func list(_ options: Options) throws {
    let session = try RegistrySession(options)
    let all = session.configuration.apps.map { Array($0.id.utf8) }
    for app in try session.configuration.application(options).map({ [$0] }) ?? all {
      if all.count > 1, !options.asJSON { Terminal.print("\(String(printing: app)):") }
      try options.printPortions(
        [
          (.figure("   MEMBERS"), { Figures.count($0.members) }),
          (.name("TOPIC", least: 12, rank: 1), { String(printing: $0.name) }),
        ], json: { ["app": app, "topic": $0.name, "members": $0.members] }, none: "no topics"
      ) { last, limit in try session.store.topics(app: app, after: last?.name ?? [], limit: limit) }
    }
  }
}

/// Devices or users from the command line or standard input.
enum RegistryNames {
  static func read(_ words: ArraySlice<String>, unless interruption: Interruption) throws -> [String] {
    var names: [String] = []
    for word in words {
      guard word == "-" else { names.append(word); continue }
      guard let input = try InputFile.standardInput(unless: interruption) else {
        throw CommandFailure(.interrupted, "interrupted: nothing was changed")
      }
      let lines = String(decoding: input, as: UTF8.self).split(whereSeparator: \.isNewline)
      names += lines.map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    }
    guard !names.isEmpty else { throw CommandFailure(.badInput, "no names on standard input") }
    return names
  }
}
