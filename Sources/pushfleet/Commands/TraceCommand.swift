import DeviceRegistry
import Gateway
import PushCore
import Settings

enum TraceCommand: Command {
  static let page = CommandPage(
    "trace", "show what happened to a request, or what was sent to a device",
    forms: [
      .form("ID", "--config", ["--app"], ["--json"]),
      .form(.either(["--token", "--user", "--installation"]), "--config", ["--app"], ["--campaign"], ["--json"]),
    ],
    """
    Shows what happened to a request, round by round: when it was received, from which queue and how old; its devices; each push
    with its connection, answer and round trip; what it waits for; and its outcome. ID is a message id, the apns-id of a push, a
    provider's token or a registration. For a device, it shows all requests, with only the pushes to that device.

    With a registry, it also shows the broadcasts whose audience the device belongs to now, with the counts of the device's
    page, and when the app and its user acknowledged a message. If neither the trace nor an acknowledgement names the device,
    the outcome is unknown, because the registry doesn't keep past audiences.

    Workers record a request when they acknowledge it, and keep the record for trace.keep (a day). They record all failed and
    expired requests, and at most trace.perSecond others per second. A request in a queue or in a worker is not recorded yet.
    Exit status 65 if nothing is known about the ID.
    """,
    [
      .config(), .option("token", "T", "a provider's token or a registration, as ID"),
      .option("user", "U", "all devices of a user"), .option("installation", "I", "all tokens of an installation"),
      .option("app", "APP", "only this application"),
      .option("campaign", "C", "only this broadcast: its campaign id, or the beginning of the id"),
      .json("print one JSON object per round, and one per broadcast that the trace doesn't cover"),
    ],
    example: "pushfleet trace 7f1c0c1e-52f7-4d7e-9a43-0d1f6a0a3b55 --config pushfleet.json5")

  static func run(_ options: Options) throws {
    let question = try TraceOrder(options)
    let configuration = try options.configuration()
    let store = try question.store(options, configuration)
    let app = try configuration.application(options)
    let history = try store.flatMap {
      try question.history(of: app.map { [$0] } ?? configuration.apps.map { Array($0.id.utf8) }, in: $0)
    }
    guard history != nil || question.kind == .id || question.kind == .token && question.campaign == nil else {
      throw CommandFailure(.badInput, "--\(question.kind.rawValue): the registry has no such device")
    }
    let reader = try TraceReader(configuration, subject: TraceSubject(question, history))
    // A fleet without a trace still has a registry.
    do { try reader.run() } catch let failure as CommandFailure where failure.status == .badInput && history != nil {
      Terminal.notice(failure.message)
    }
    let story = try TraceStory(reader.rounds, history, store, prefix: configuration.prefix)
    guard !story.isEmpty else {
      throw CommandFailure(.badInput, question.unknown(configuration, history, leftOut: reader.leftOut))
    }
    options.print(story.json, text: TraceText(prefix: configuration.prefix, width: Terminal.width).text(of: story))
  }
}

extension TraceOrder {
  init(_ options: Options) throws(CommandFailure) {
    let given = [Kind.token, .user, .installation].compactMap { kind in options[kind.rawValue].map { (kind, $0) } }
    let all = given + options.operands.map { (.id, $0) }
    guard all.count == 1, let (kind, text) = all.first, !text.isEmpty else {
      throw CommandFailure(
        .usage, "one ID is needed (a message id, an apns-id, a token or a registration), or --token, --user or --installation")
    }
    guard options["campaign"] == nil || kind != .id else {
      throw CommandFailure(.usage, "--campaign needs a device: name it by --token, --user or --installation")
    }
    self.init(kind, text, app: options["app"], campaign: options["campaign"])
  }

  /// - Throws: if the registry is needed and can't be read.
  func store(_ options: Options, _ configuration: Configuration) throws -> DeviceStore? {
    guard kind != .id || configuration.registry != nil else { return nil }
    do { return try RegistrySession(options).store } catch {
      guard kind == .id else { throw error }
      Terminal.notice("the registry can't be read, so broadcasts and acknowledgements are left out: \(error)")
      return nil
    }
  }

  /// - Returns: nil if the ID names no device of the registry.
  func history(
    of apps: [[UInt8]], in store: DeviceStore, most: Int = DeviceHistory.mostCampaigns
  ) throws -> DeviceHistory? {
    let devices = try apps.flatMap { try records($0, store) }
    guard !devices.isEmpty else { return nil }
    return try DeviceHistory(
      of: devices, campaign: campaign.map { try CampaignsCommand.find($0, in: store) }, in: store, most: most)
  }

  private func records(_ app: [UInt8], _ store: DeviceStore) throws -> [DeviceRecord] {
    let text = Array(text.utf8)
    guard kind == .id || kind == .token else { return try DevicesCommand.records(kind.rawValue, text, app, store) }
    return DeviceReference(text: text) == nil ? [] : try DevicesCommand.records("token", text, app, store)
  }

  func unknown(_ configuration: Configuration, _ history: DeviceHistory?, leftOut: Int) -> String {
    let kept =
      configuration.trace == nil
      ? "trace.keep is \"none\"" : "it has not ended yet, or ended longer ago than trace.keep says"
    let omitted = leftOut > 0 ? ", or is one of \(leftOut) successes that trace.perSecond left out" : ""
    let broadcasts =
      history == nil ? "" : "; no broadcast that the registry keeps has the device in its audience now"
    return "nothing is known of \(SafeText.value(text)): \(kept)\(omitted)\(broadcasts)"
  }
}
