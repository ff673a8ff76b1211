import DeviceRegistry
import Foundation
import PushCore
import Reactor
import Settings

/// A command that performs operations in the name of the system's user. Each one is recorded in the registry, and a worker
/// publishes the record.
struct OperatorSession {
  let configuration: Configuration
  let store: DeviceStore
  private let reason: [UInt8]?

  static let reasonOption = PageEntry.option("reason", "TEXT", "why; shown wherever the state is shown, and in the audit")
  /// Bytes.
  private static let longestReason = 500

  init(_ options: Options) throws {
    let session = try RegistrySession(options, isReading: true)
    (configuration, store) = (session.configuration, session.store)
    reason = options["reason"].map { Array($0.utf8) }
    guard reason?.count ?? 0 <= Self.longestReason else {
      throw CommandFailure(.usage, "--reason: at most \(Self.longestReason) bytes")
    }
  }

  func perform(_ action: FleetOperation.Action) throws {
    if case .failure(let refusal) = try result(of: action) { throw CommandFailure(.badInput, refusal.reason) }
  }

  /// - Returns: false if the campaign's state doesn't allow the change.
  func changes(_ campaign: Campaign, to state: CampaignState) throws -> Bool {
    if case .success = try result(of: .campaign(campaign.description.id, state)) { true } else { false }
  }

  private func result(of action: FleetOperation.Action) throws -> Result<AuditEvent, OperationRefusal> {
    let operation = FleetOperation(action, by: Self.actor, from: Array(ThisProcess.host.utf8), because: reason)
    return try store.perform(operation, now: RegistrySession.now)
  }

  /// Records messages that a command has removed or sent back, if a registry is configured.
  /// - Throws: status 69 if that can't be recorded; the messages are gone nevertheless.
  static func record(
    _ options: Options, _ action: String, _ place: LetterPlace, _ filter: LetterFilter, _ count: Int
  ) throws {
    guard try options.configuration().registry != nil else { return }
    do {
      let session = try OperatorSession(options)
      let queue = place.queue(session.configuration.topology)
      try session.perform(.messages(action, app: filter.app.map { Array($0.utf8) }, queue: queue, count: count))
    } catch {
      throw CommandFailure(.unavailable, "\(action): \(place.count(count)); the registry has no record of it: \(error)")
    }
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
