import DeviceRegistry
import Logging
import PushCore
import Wire

/// What answers say against registered tokens, until the registry has it, and the breaker of each application that stops believing them.
/// Confined to the shard's thread.
package final class TokenMarks {
  private let apps: Applications
  private let registry: RegistryClient?
  private let time: Turn
  private let log: Log
  /// Of each application, by its index; as long as the last one that had an answer needs.
  var breakers: [Breaker] = []
  private let closed: Breaker
  /// To be written.
  private var marks: [DeviceMark] = []
  /// Those that couldn't be written when they were to be.
  private var kept: [DeviceMark] = []

  private static let marksPerWrite = 500
  private static let mostKept = 20_000

  /// - Parameters:
  ///   - breaker: as each application's begins.
  ///   - registry: nil where none is configured: then an open breaker is only logged.
  init(apps: Applications, breaker: Breaker, registry: RegistryClient?, time: Turn, log: Log) {
    self.apps = apps
    self.registry = registry
    self.time = time
    self.log = log
    closed = breaker
  }

  /// Remembers what an answer says against a token.
  /// - Parameter admittedAt: when the request came, in unix milliseconds: it stands for the provider's time where that is missing, as what
  ///   was registered since isn't meant.
  /// - Returns: false when it isn't believed, as the application's breaker is open.
  func note(
    _ meaning: ReplyMeaning, _ platform: Platform, token: ArraySlice<UInt8>, app: Int, admittedAt: Int64
  ) -> Bool {
    let verdict: DeviceMark.Verdict
    switch meaning.reaction {
    case .delivered:
      count(app, isRefused: false, meaning.reason)
      return true
    case .gone: verdict = .gone(since: meaning.invalidSince ?? admittedAt)
    case .suspect: verdict = .suspect
    case .drop, .retry, .credential: return true
    }
    count(app, isRefused: true, meaning.reason)
    guard !isOpen(app) else { return false }
    append(
      DeviceMark(
        app: apps[app].id, platform: platform, token: Array(token), verdict: verdict,
        reason: Array(meaning.reason.utf8)))
    return true
  }

  /// The same of a token that is an activity's: such tokens die by the hour, and say nothing of devices and of settings.
  func noteActivity(_ meaning: ReplyMeaning, token: [UInt8], app: Int, admittedAt: Int64) {
    guard case .gone = meaning.reaction, !isOpen(app) else { return }
    append(
      DeviceMark(
        app: apps[app].id, platform: .apns, token: token, isForActivity: true,
        verdict: .gone(since: meaning.invalidSince ?? admittedAt), reason: Array(meaning.reason.utf8)))
  }

  private func append(_ mark: DeviceMark) {
    guard registry != nil else { return }
    marks.append(mark)
    if marks.count >= Self.marksPerWrite { write() }
  }

  /// Applications whose breaker is open.
  package var open: [Int] { breakers.indices.filter { breakers[$0].isOpen } }
  func isOpen(_ app: Int) -> Bool { app < breakers.count && breakers[app].isOpen }

  private func count(_ app: Int, isRefused: Bool, _ reason: String) {
    if app >= breakers.count { breakers += Array(repeating: closed, count: app + 1 - breakers.count) }
    guard breakers[app].note(isRefused: isRefused, at: time.now, wallClock: time.wallClock) else { return }
    // What led here is as doubtful as what follows.
    marks.removeAll { $0.app == apps[app].id }
    kept.removeAll { $0.app == apps[app].id }
    log.error(
      registry == nil
        ? "an abnormal share of tokens is refused: check environment and topic before anything is pruned"
        : "an abnormal share of tokens is refused: nothing is marked and campaigns are held; check environment, topic and registry",
      ["app": String(decoding: apps[app].id, as: UTF8.self), "percent": breakers[app].percent, "reason": reason])
  }

  /// An operator has resumed a campaign: where that was after the breaker opened, tokens are marked again.
  /// - Parameter time: unix milliseconds.
  func campaignResumed(_ campaign: [UInt8], app: Int, at time: Int64) {
    guard app < breakers.count, breakers[app].resumed(at: time) else { return }
    log.info("a campaign was resumed: tokens are marked again", ["campaign": String(decoding: campaign, as: UTF8.self)])
  }

  // MARK: written

  /// To be called about once a second.
  package func write() {
    guard !marks.isEmpty else { return }
    write(marks)
    marks.removeAll(keepingCapacity: true)
  }

  /// To be called about once a second: one portion of what couldn't be written, to see whether it goes again.
  package func writeKept() {
    guard !kept.isEmpty else { return }
    let portion = Array(kept.prefix(Self.marksPerWrite))
    kept.removeFirst(portion.count)
    write(portion)
  }

  private func write(_ marks: [DeviceMark]) {
    registry?.call(.write(.devices) { try $0.mark(marks, now: $1) }) { [weak self] result in
      switch result {
      case .success(let outcomes):
        self?.keep(zip(marks, outcomes).compactMap { mark, outcome in outcome == .busy ? mark : nil })
      case .failure(.unavailable): self?.keep(marks)
      case .failure: return
      }
    }
  }

  /// What doesn't fit is made again by the next send's answer.
  private func keep(_ marks: [DeviceMark]) {
    for mark in marks where kept.count < Self.mostKept {
      if let app = apps.place(of: mark.app), !isOpen(app) { kept.append(mark) }
    }
  }
}
