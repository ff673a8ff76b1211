import Foundation
import Providers
import PushCore
import Reactor
import Settings

enum ChannelsCommand: Command {
  static let page = CommandPage(
    "channels", "create, list, show and delete APNs broadcast channels",
    forms: [
      .action("create", "--config", ["--app"], ["--sender"], ["--environment"], ["--storage"], ["--json"]),
      .action("list", "--config", ["--app"], ["--sender"], ["--environment"], ["--json"]),
      .action("show", "--config", ["--app"], ["--sender"], ["--environment"], ["--json"], "ID"),
      .action("delete", "--config", ["--app"], ["--sender"], ["--environment"], ["--json"], "ID"),
    ],
    """
    A channel reaches every Live Activity that listens on it: send to "apns-channel:<ID>". create prints the ID, which APNs chooses.
    An app has at most 10,000 channels in each environment; they don't end with activities, and a deleted one doesn't come back.
    Broadcasts have to be switched on for the app in Apple's developer portal.
    """,
    [
      .config(), .option("app", "APP", "the application; may be left out when one is configured"),
      .option("sender", "S", "one of its senders, in place of the application's own credential"),
      .option("environment", "E", "production or sandbox: each channel belongs to one of them; the app's first without it"),
      .option(
        "storage", "none", in: "none|latest",
        "APNs stores nothing; broadcasts need expiration 0 and may be more frequent (the default)"),
      .option("storage", "latest", "APNs keeps the latest broadcast for devices that are away, up to 8 hours"),
      .json("print JSON, one object on a line"),
    ],
    "If create gets no answer (exit status 69), the channel may exist all the same: look with list before you try again.",
    example: "pushfleet channels create --config pushfleet.json5 --app com.example.app --storage latest")

  static func run(_ options: Options) throws {
    let operation: ChannelRequest.Operation =
      switch options.action {
      case "create": .create(storesLatest: try options.choice("storage", of: ["none", "latest"]) == "latest")
      case "list": .list
      case "show": .read(channel: try channel(options))
      default: .delete(channel: try channel(options))
      }
    let environment = try options.choice("environment", of: APNsConfiguration.Environment.allCases.map(\.rawValue))
    let configuration = try options.configuration()
    let access = try configuration.channelAccess(
      app: try app(options, configuration), sender: options["sender"],
      environment: environment.flatMap(APNsConfiguration.Environment.init))
    let answer = try ask(operation, access)
    try print(operation, answer, options)
  }

  /// Accepts the id with or without the prefix that requests use.
  private static func channel(_ options: Options) throws(CommandFailure) -> [UInt8] {
    guard let text = options.operands.first, options.operands.count == 1 else {
      throw CommandFailure(.usage, "name one channel by its id; `pushfleet channels list` lists them")
    }
    let target = text.hasPrefix("apns-channel:") ? text : "apns-channel:" + text
    guard case .success(.channel(let id)) = Target.classify(Array(target.utf8)) else {
      throw CommandFailure(.usage, "\(SafeText.value(text)) is not a channel id: expected 1 to 256 characters of base64")
    }
    return Array(id)
  }

  private static func app(_ options: Options, _ configuration: Configuration) throws(CommandFailure) -> String {
    guard let app = try configuration.application(options) else {
      throw CommandFailure(.usage, "--app is missing: \(configuration.apps.count) applications are configured")
    }
    return String(decoding: app, as: UTF8.self)
  }

  // MARK: the request

  private static func ask(
    _ operation: ChannelRequest.Operation, _ access: (credentials: APNsCredentials, bundleID: String)
  ) throws -> Answer {
    let loop = try EventLoop()
    var outcome = ChannelRequest.Outcome.notSent("interrupted")
    let request = try ChannelRequest(
      operation, bundleID: access.bundleID, credentials: access.credentials, wallClock: loop.wallClock
    ) {
      outcome = $0
      loop.stop()
    }
    request.start(loop.time, loop)
    var isInterrupted = false
    let signals = try Signals(loop: loop, [2, 15]) { _ in
      isInterrupted = true
      loop.stop()
    }
    loop.run()
    signals.close()
    let advice = if case .create = operation { ": the channel may exist; look with `channels list`" } else { "" }
    if isInterrupted { throw CommandFailure(.interrupted, "interrupted\(advice)") }
    switch outcome {
    case .notSent(let reason): throw CommandFailure(.unavailable, "APNs is unreachable: \(reason)")
    case .unknown(let reason):
      throw CommandFailure(.unavailable, "the outcome is unknown: \(reason)\(advice)")
    case .answered(let status, let channel, let body):
      guard !(200...299).contains(status) else { return (channel, body) }
      let meaning = APNsReply.interpret(status: status, body: body)
      throw CommandFailure(
        Self.status(of: meaning), "APNs refuses: \(meaning.reason) (\(status)): \(APNsReply.words(for: meaning))")
    }
  }

  private typealias Answer = (channel: [UInt8]?, body: [UInt8])

  private static func status(of meaning: ReplyMeaning) -> ExitStatus {
    switch meaning.reaction {
    case .retry: .unavailable
    case .credential(let code) where code == .unavailable: .unavailable
    case .credential: .configuration
    case .drop(let code) where code == .invalidAPNsCredential || code == .invalidPackageName: .configuration
    case .delivered, .drop, .gone, .suspect: .badInput
    }
  }

  // MARK: the answer

  private static func print(_ operation: ChannelRequest.Operation, _ answer: Answer, _ options: Options) throws {
    func show(_ id: [UInt8], storage: String? = nil, text: String) {
      options.print(["channel": id, "storage": JSONOptional(storage)], text: text)
    }
    switch operation {
    case .create(let storesLatest):
      guard let id = answer.channel else {
        throw CommandFailure(.unavailable, "APNs returned no channel id; look with `pushfleet channels list`")
      }
      show(id, storage: storesLatest ? "latest" : "none", text: String(decoding: id, as: UTF8.self))
    case .delete(let id):
      if options.asJSON { show(id, text: "") } else { Terminal.notice("deleted") }
    case .read(let id):
      let storage = try document(answer.body) { document in
        guard let policy = document.value("message-storage-policy", of: document.root) else { return nil as String? }
        return switch document.integer(policy) {
        case 0: "none"
        case 1: "latest"
        default: nil
        }
      }
      show(
        id, storage: storage,
        text: FactList.text([("channel", String(decoding: id, as: UTF8.self)), ("storage", storage ?? "unknown")]))
    case .list:
      let ids = try document(answer.body) { document -> [[UInt8]]? in
        guard let list = document.value("channels", of: document.root), document.kind(list) == .array else { return nil }
        return document.elements(of: list).filter { document.kind($0) == .string }.map(document.string)
      }
      guard let ids else { throw CommandFailure(.unavailable, "APNs' answer can't be read") }
      if ids.isEmpty, !options.asJSON { Terminal.say("no channels") }
      for id in ids { show(id, text: String(printing: id)) }
    }
  }

  private static func document<Value>(_ body: [UInt8], _ read: (JSONDocument) -> Value) throws(CommandFailure) -> Value {
    guard let document = try? JSONDocument(body, limits: JSONLimits(bytes: 4 << 20, depth: 8)),
      document.kind(document.root) == .object
    else { throw CommandFailure(.unavailable, "APNs' answer can't be read") }
    return read(document)
  }
}
