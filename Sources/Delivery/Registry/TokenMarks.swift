import DeviceRegistry
import Logging
import PushCore
import Wire

/// Collects the providers' verdicts on tokens and writes them to the registry, unless the application's breaker is open.
/// Confined to the shard's thread.
package final class TokenMarks {
  private let tools: ShardTools
  /// By the application's index; grows with the highest index that had an answer.
  var breakers: [Breaker] = []
  /// By push service: a service may answer a wave of false refusals, which says nothing about the application's other devices.
  private var breakersOfOrigins: [Origin: Breaker] = [:]
  private static let mostOrigins = 1_000

  /// A push service with an application's devices.
  private struct Origin: Hashable {
    let app: Int
    let text: ArraySlice<UInt8>
  }
  private let closed: Breaker
  private var marks: [DeviceMark] = []
  private var kept: [DeviceMark] = []

  private static let marksPerWrite = 500
  private static let mostKept = 20_000

  /// Without a registry, an open breaker is only logged.
  /// - Parameter breaker: the initial state of each application's breaker.
  init(_ tools: ShardTools, breaker: Breaker) {
    self.tools = tools
    closed = breaker
  }

  /// Records a provider's verdict on a token.
  /// - Parameter admittedAt: unix milliseconds of the request's arrival. It replaces a missing time of the provider, so that a
  ///   token registered later isn't marked.
  /// - Returns: false if the verdict is ignored because the breaker is open.
  func note(
    _ meaning: ReplyMeaning, _ platform: Platform, token: ArraySlice<UInt8>, app: Int, admittedAt: Int64
  ) -> Bool {
    let verdict: DeviceMark.Verdict
    let origin = platform == .webpush ? Origin(app: app, text: WebPushSubscription.origin(of: token)) : nil
    switch meaning.reaction {
    case .delivered:
      if let origin { note(origin, isRefused: false, meaning.reason) } else { count(app, isRefused: false, meaning.reason) }
      return true
    case .gone: verdict = .gone(since: meaning.invalidSince ?? admittedAt)
    case .suspect: verdict = .suspect
    case .drop, .retry, .credential: return true
    }
    if let origin {
      note(origin, isRefused: true, meaning.reason)
      // The application's other devices are sent to, so its campaigns go on.
      guard breakersOfOrigins[origin]?.isOpen != true else { return true }
    } else {
      count(app, isRefused: true, meaning.reason)
    }
    guard !isOpen(app) else { return false }
    append(
      DeviceMark(
        app: tools.apps[app].id, platform: platform, token: Array(token), verdict: verdict,
        reason: Array(meaning.reason.utf8)))
    return true
  }

  /// The same for a Live Activity's token. The breaker doesn't count these: they expire within hours, whatever the settings
  /// are.
  func noteActivity(_ meaning: ReplyMeaning, token: [UInt8], app: Int, admittedAt: Int64) {
    guard case .gone = meaning.reaction, !isOpen(app) else { return }
    append(
      DeviceMark(
        app: tools.apps[app].id, platform: .apns, token: token, isForActivity: true,
        verdict: .gone(since: meaning.invalidSince ?? admittedAt), reason: Array(meaning.reason.utf8)))
  }

  private func append(_ mark: DeviceMark) {
    guard tools.registry != nil else { return }
    marks.append(mark)
    if marks.count >= Self.marksPerWrite { write() }
  }

  package var open: [Int] { breakers.indices.filter { breakers[$0].isOpen } }
  func isOpen(_ app: Int) -> Bool { app < breakers.count && breakers[app].isOpen }

  /// - Parameter origin: the push service that gave the answer.
  private func note(_ origin: Origin, isRefused: Bool, _ reason: String) {
    if breakersOfOrigins[origin] == nil {
      if breakersOfOrigins.count >= Self.mostOrigins { breakersOfOrigins = breakersOfOrigins.filter(\.value.isOpen) }
      guard breakersOfOrigins.count < Self.mostOrigins else { return }
      // A copy, because the slice would keep the page's rows.
      breakersOfOrigins[Origin(app: origin.app, text: Array(origin.text)[...])] = closed
    }
    let hasOpened = breakersOfOrigins[origin]?.note(
      isRefused: isRefused, at: tools.time.now, wallClock: tools.time.wallClock)
    guard hasOpened == true else { return }
    let id = tools.apps[origin.app].id
    let isItsMark = { (mark: DeviceMark) in
      mark.platform == .webpush && mark.app == id && WebPushSubscription.origin(of: mark.token[...]) == origin.text
    }
    marks.removeAll(where: isItsMark)
    kept.removeAll(where: isItsMark)
    tools.log.error(
      "a push service refuses an abnormal share of subscriptions: none of them is marked",
      ["app": String(decoding: id, as: UTF8.self), "origin": String(decoding: origin.text, as: UTF8.self), "reason": reason])
  }

  private func count(_ app: Int, isRefused: Bool, _ reason: String) {
    if app >= breakers.count { breakers += Array(repeating: closed, count: app + 1 - breakers.count) }
    guard breakers[app].note(isRefused: isRefused, at: tools.time.now, wallClock: tools.time.wallClock) else { return }
    // The marks that opened the breaker are as doubtful as later ones.
    marks.removeAll { $0.app == tools.apps[app].id }
    kept.removeAll { $0.app == tools.apps[app].id }
    tools.log.error(
      tools.registry == nil
        ? "an abnormal share of tokens is refused: check environment and topic before anything is pruned"
        : "an abnormal share of tokens is refused: nothing is marked and campaigns are held; check environment, topic and registry",
      ["app": String(decoding: tools.apps[app].id, as: UTF8.self), "percent": breakers[app].percent, "reason": reason])
  }

  /// An operator has resumed a campaign. If the breaker opened before that, it closes and tokens are marked again.
  /// - Parameter time: unix milliseconds.
  func campaignResumed(_ campaign: [UInt8], app: Int, at time: Int64) {
    guard app < breakers.count, breakers[app].resumed(at: time) else { return }
    tools.log.info("a campaign was resumed: tokens are marked again", ["campaign": String(decoding: campaign, as: UTF8.self)])
  }

  // MARK: writing

  /// To be called about once a second.
  package func write() {
    guard !marks.isEmpty else { return }
    write(marks)
    marks.removeAll(keepingCapacity: true)
  }

  /// To be called about once a second. Retries one portion of the failed marks.
  package func writeKept() {
    guard !kept.isEmpty else { return }
    let portion = Array(kept.prefix(Self.marksPerWrite))
    kept.removeFirst(portion.count)
    write(portion)
  }

  private func write(_ marks: [DeviceMark]) {
    tools.registry?.call(.write(.devices) { try $0.mark(marks, now: $1) }) { [weak self] result in
      switch result {
      case .success(let outcomes):
        self?.keep(zip(marks, outcomes).compactMap { mark, outcome in outcome == .busy ? mark : nil })
      case .failure(.unavailable): self?.keep(marks)
      case .failure: return
      }
    }
  }

  /// A mark above the limit is dropped: the next push to the token makes it again.
  private func keep(_ marks: [DeviceMark]) {
    for mark in marks where kept.count < Self.mostKept {
      if let app = tools.apps.place(of: mark.app), !isOpen(app) { kept.append(mark) }
    }
  }
}
