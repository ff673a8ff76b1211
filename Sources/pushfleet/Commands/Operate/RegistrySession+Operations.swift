import Broker
import DeviceRegistry
import Foundation
import PushCore
import Reactor
import Settings

/// Operations in the name of the system's user. Each one is recorded in the registry, and a worker publishes the record.
extension RegistrySession {
  static let reasonOption = PageEntry.option("reason", "TEXT", "why; shown wherever the state is shown, and in the audit")
  static let untilOption = PageEntry.option(
    "until", "TIME", "resume then: in 90s, 15m, 2h, 7d, or at 2026-11-20T21:22:00Z")

  /// The forms of the commands that pause and drain applications, lanes and credentials.
  /// - Parameter others: a command's own forms.
  static func forms(_ subject: UsageForm.Item, _ others: UsageForm...) -> [UsageForm] {
    [
      .action("[list]", "--config", ["--json"]), .action("pause", "--config", ["--until"], ["--reason"], ["--json"], subject),
      .action("drain|resume", "--config", ["--reason"], ["--json"], subject),
    ] + others + [.action("discard", "--config", ["--reason"], ["--yes"], ["--json"], subject)]
  }

  /// The options of these forms, except `--json`.
  static let options: [PageEntry] = [
    .config(", which names the registry"), untilOption, reasonOption, .flag("yes", "don't ask; needed without a terminal"),
  ]

  /// For commands whose `--reason` selects messages.
  static let becauseOption = PageEntry.option("because", "TEXT", "why; shown in the audit")

  static func reason(_ options: Options, in option: String) throws(CommandFailure) -> [UInt8]? {
    guard let reason = options[option].map({ Array($0.utf8) }) else { return nil }
    guard FleetOperation.isReason(reason) else {
      throw CommandFailure(.usage, "--\(option): at most \(FleetOperation.longestReason) bytes, without control characters")
    }
    return reason
  }

  @discardableResult
  func perform(_ action: FleetOperation.Action) throws -> AuditEvent {
    do { return try result(of: action).get() } catch let refusal as OperationRefusal {
      throw CommandFailure(.badInput, refusal.reason)
    }
  }

  /// Shows the states of these subjects, and of others that left the configuration while they were paused.
  private func list(_ subjects: [ControlSubject], _ options: Options) throws {
    let controls = try store.controls()
    let others = controls.filter {
      ($0.mode != .running || $0.rate != nil) && $0.subject.kind == subjects.first?.kind && !subjects.contains($0.subject)
    }
    try AppsCommand.show(subjects.map { controls.inForce(for: $0, at: RegistrySession.now) } + others, options)
  }

  /// Lists these applications, lanes, credentials or webhooks, or controls one of them.
  /// - Parameters:
  ///   - operand: what the help calls a name.
  ///   - other: the operation for an action of this command alone; nil if it is done.
  func control(
    _ names: [String], _ operand: String, _ options: Options, operands: Int = 1, _ subject: ([UInt8]) -> ControlSubject,
    other: (ControlSubject) throws -> FleetOperation.Action? = { _ in nil }
  ) throws {
    guard options.action != "list" else { return try list(names.map { subject(Array($0.utf8)) }, options) }
    guard let name = options.operands.first else {
      throw CommandFailure(.usage, "name \(operand): \(names.joined(separator: ", "))")
    }
    try options.refuseOperands(after: operands)
    let named = subject(Array(name.utf8))
    // A subject that left the configuration while it was paused can be resumed.
    let isRelease = options.action == "resume" || options.action == "rate" && options.operands.last == "none"
    if try !isRelease || store.control(named) == Control(named) {
      try Options.check(name, among: names, of: "\(operand.split(separator: " ").last ?? ""): ")
    }
    switch options.action {
    case "pause": try perform(.pause(named, until: Self.until(options["until"])))
    case "drain": try perform(.drain(named))
    case "resume": try perform(.resume(named))
    default:
      guard let operation = try other(named) else { return }
      try perform(operation)
    }
    try AppsCommand.show([store.controls().inForce(for: named, at: RegistrySession.now)], options)
  }

  /// - Returns: false if the campaign's state doesn't allow the change.
  func changes(_ campaign: Campaign, to state: CampaignState) throws -> Bool {
    if case .success = try result(of: .campaign(campaign.description.id, state)) { true } else { false }
  }

  private func result(of action: FleetOperation.Action) throws -> Result<AuditEvent, OperationRefusal> {
    let operation = FleetOperation(action, by: Self.actor, from: Array(ThisProcess.host.utf8), because: reason)
    return try store.perform(operation, now: RegistrySession.now)
  }

  /// Removes messages, or sends them back, and records beginning and end, also of a failure, if a registry is configured.
  /// - Parameters:
  ///   - option: the option with the reason.
  ///   - walk: removes the messages, or sends them back.
  /// - Throws: status 69 if the end can't be recorded; the messages are gone nevertheless.
  static func recording(
    _ options: Options, _ action: String, _ place: LetterPlace, _ filter: LetterFilter, reasonIn option: String,
    _ walk: LetterWalk
  ) throws {
    _ = try reason(options, in: option)
    func record(_ count: Int?) throws {
      guard try options.configuration().registry != nil else { return }
      do {
        let session = try RegistrySession(options, reasonIn: option)
        let queue = place.queue(session.configuration.topology)
        let selection = filter.members + (options["rate"].map { [("rate", Array($0.utf8))] } ?? [])
        try session.perform(
          .messages(.init(action, app: filter.app.map { Array($0.utf8) }, queue: queue, count: count, filter: selection)))
      } catch {
        let what = count.map { "`\(action)`, \(place.count($0))," } ?? "the beginning of `\(action)`"
        throw CommandFailure(.unavailable, "\(what) can't be recorded in the audit: \(error)")
      }
    }
    do { try record(nil) } catch { Terminal.notice("\(error)") }
    let outcome = Result { try walk.run() }
    do { try record(walk.changed) } catch {
      guard case .failure = outcome else { throw error }
      Terminal.notice("\(error)")
    }
    try outcome.get()
  }

  /// The user, also behind sudo.
  private static var actor: [UInt8] {
    Array((ProcessInfo.processInfo.environment["SUDO_USER"] ?? NSUserName()).prefix(64).utf8)
  }

  /// - Parameter text: how long from now (90s, 15m, 2h, 7d), or a time.
  /// - Returns: Unix milliseconds.
  static func until(_ text: String?, now: Int64 = RegistrySession.now) throws(CommandFailure) -> Int64? {
    guard let text else { return nil }
    // The filter counts back from now.
    let time = try LetterFilter.time(text, now: now, option: "until")
    let until = Timestamp.milliseconds(of: Array(text.utf8)) == nil ? 2 * now - time : time
    guard until > now else { throw CommandFailure(.usage, "--until \(SafeText.value(text)): the time has passed") }
    return until
  }
}
