import DeviceRegistry
import Foundation
import PushCore
import Reactor
import Settings

enum TraceCommand: Command {
  static let page = CommandPage(
    "trace", "tell what became of a request, or what a device was sent",
    forms: [
      .form("ID", "--config", ["--app"], ["--json"]),
      .form(.either(["--token", "--user", "--installation"]), "--config", ["--app"], ["--campaign"], ["--json"]),
    ],
    """
    Tells what became of a request, round by round: when it was received, from which queue and how old; its devices; each push
    with its connection, answer and round trip; what it waits for; how it ended. ID is a message id, the apns-id of a push, a
    provider's token or a registration. Of a device, all its requests are shown, and of their pushes only those to the device.

    With a registry, the broadcasts are included whose audience the device belongs to now, with the counts of its page, and when
    the app and its user acknowledged a message. Where neither the trace nor an acknowledgement names the device, its outcome is
    unknown: the registry doesn't keep who was in the audience then.

    Workers note requests as they are acknowledged, for as long as trace.keep says (a day): all that failed or expired, and of the
    others as many in a second as trace.perSecond says. A request in a queue or in a worker's hand is not noted yet.
    Exit status 65 when nothing is known of the ID.
    """,
    [
      .config(), .option("token", "T", "a provider's token or a registration, as ID"),
      .option("user", "U", "all devices of a user"), .option("installation", "I", "all tokens of an installation"),
      .option("app", "APP", "only this application"),
      .option("campaign", "C", "only this broadcast, by its campaign's id or the beginning of it"),
      .json("print one JSON object per round, and one per broadcast whose page the trace does not tell of"),
    ],
    example: "pushfleet trace 7f1c0c1e-52f7-4d7e-9a43-0d1f6a0a3b55 --config pushfleet.json5")

  static func run(_ options: Options) throws {
    let question = try TraceQuestion(options)
    let configuration = try options.configuration()
    let history = try question.history(options, configuration)
    let reader = try TraceReader(configuration, subject: TraceSubject(question, history))
    // A fleet without a trace still has a registry.
    do { try reader.run() } catch let failure as CommandFailure where failure.status == .badInput && history != nil {
      Terminal.complain("pushfleet: \(failure.message)")
    }
    let story = try TraceStory(reader.rounds, history)
    guard !story.isEmpty else {
      throw CommandFailure(.badInput, question.unknown(configuration, history, leftOut: reader.leftOut))
    }
    options.print(story.json, text: TraceText(prefix: configuration.prefix, width: Terminal.width).text(of: story))
  }
}

/// What is asked for: a request, or devices.
struct TraceQuestion {
  enum Kind: String { case id, token, user, installation }

  let kind: Kind
  let text: String
  /// The broadcast that alone is asked for.
  let campaign: String?

  init(_ options: Options) throws(CommandFailure) {
    let given = [Kind.token, .user, .installation].compactMap { kind in options[kind.rawValue].map { (kind, $0) } }
    let all = given + options.operands.map { (.id, $0) }
    guard all.count == 1, let (kind, text) = all.first, !text.isEmpty else {
      throw CommandFailure(
        .usage, "one ID is needed (a message id, an apns-id, a token or a registration), or --token, --user or --installation")
    }
    campaign = options["campaign"]
    guard campaign == nil || kind != .id else {
      throw CommandFailure(.usage, "--campaign needs a device: name it by --token, --user or --installation")
    }
    self.kind = kind
    self.text = text
  }

  /// - Returns: nil where the ID names no device that the registry knows.
  /// - Throws: when the registry is needed, and it can't be read.
  func history(_ options: Options, _ configuration: Configuration) throws -> DeviceHistory? {
    guard kind != .id || configuration.registry != nil else { return nil }
    let session: RegistrySession
    do { session = try RegistrySession(options, isReading: true) } catch {
      guard kind == .id else { throw error }
      Terminal.complain("pushfleet: the registry can't be read, so broadcasts and acknowledgements are left out: \(error)")
      return nil
    }
    let app = try session.optionalApp(options)
    let devices = try (app.map { [$0] } ?? configuration.apps.map { Array($0.id.utf8) }).flatMap { app in
      try records(app, session.store)
    }
    guard !devices.isEmpty else {
      if kind == .id || kind == .token && campaign == nil { return nil }
      throw CommandFailure(.badInput, "--\(kind.rawValue): the registry has no such device")
    }
    return try DeviceHistory(
      of: devices, campaign: campaign.map { try CampaignsCommand.find($0, in: session.store) }, in: session.store)
  }

  private func records(_ app: [UInt8], _ store: any DeviceStore) throws -> [DeviceRecord] {
    guard kind == .id || kind == .token else {
      return try DevicesCommand.records(kind.rawValue, Array(text.utf8), app, store)
    }
    guard case .success(let target) = Target.classify(Array(text.utf8)) else { return [] }
    switch target {
    case .registration: return try DevicesCommand.records("registration", Array(text.utf8), app, store)
    case .apns, .fcm: return try DevicesCommand.records("token", Array(text.utf8), app, store)
    case .fcmTopics, .channel, .topic, .all, .user, .group, .invalid: return []
    }
  }

  func unknown(_ configuration: Configuration, _ history: DeviceHistory?, leftOut: Int) -> String {
    let kept =
      configuration.trace == nil
      ? "trace.keep is \"none\"" : "it is still to be received, or ended longer ago than trace.keep says"
    let omitted = leftOut > 0 ? ", or is one of \(leftOut) successes that trace.perSecond left out" : ""
    let broadcasts =
      history == nil ? "" : "; no broadcast that the registry keeps has the device in its audience now"
    return "nothing is known of \(Shown.value(text)): \(kept)\(omitted)\(broadcasts)"
  }
}
