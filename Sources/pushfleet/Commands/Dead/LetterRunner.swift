import Broker
import Gateway
import PushCore
import Reactor
import Settings

/// Carries out operators' orders for the gateway, with the same walks as `pushfleet dead` and `held`.
struct LetterRunner: LetterWorker {
  let configuration: Configuration

  /// The most dead letters that a look visits. A request to the gateway must not last for minutes.
  private static let mostLooked = 10_000
  /// Bytes of the bodies in an answer.
  private static let mostBody = 64 << 10
  /// Seconds between two reports of the progress.
  private static let pause = 0.5

  func begin(
    _ order: LetterOrder, progress: @escaping @Sendable (Int, Int) -> Void, then: @escaping @Sendable (LetterOutcome) -> Void
  ) -> @Sendable () -> Void {
    let thread = WalkThread()
    do {
      let (walk, details) = try walk(for: order)
      thread.use(walk, details)
      try startThread(named: "letters") { thread.run(progress: progress, pause: Self.pause, then: then) }
    } catch { then(LetterOutcome(failure: "\(error)")) }
    return { thread.stop() }
  }

  private typealias Details = () -> JSONObject

  private func walk(for order: LetterOrder) throws -> (LetterWalk, Details) {
    let place = LetterPlace(order.queue)
    switch order.action {
    case .look(let shown, let withContent):
      return try look(place, order, shown: shown, body: withContent ? Self.mostBody : nil)
    case .drop:
      return (try LetterLook(configuration, order.filter, place.for("drop"), isRemoving: true), { [:] })
    case .replay(let rate):
      let replay = try LetterReplay(configuration, order.filter, rate: rate, isDry: false)
      replay.showsProgress = false
      return (replay, { DeadCommand.json(replay, false) })
    }
  }

  private func look(_ place: LetterPlace, _ order: LetterOrder, shown: Int, body: Int?) throws -> (LetterWalk, Details) {
    var filter = order.filter
    filter.limit = nil
    var groups = LetterGroups()
    var letters: [[UInt8]] = []
    let most = order.queue == .dead ? Self.mostLooked : nil
    let look = try LetterLook(configuration, filter, place.for("look", most: most), maximumBody: body ?? 0) { letter in
      groups.add(letter)
      if letters.count < shown { letters.append((body == nil ? letter.summary : letter.json).line) }
    }
    return (
      look,
      {
        [
          "matched": look.matched, "seen": look.done, "ready": look.expected,
          "groups": JSONRaw(JSONObjectWriter.array(groups.json.map(\.line))),
          "letters": JSONRaw(JSONObjectWriter.array(letters)),
        ]
      }
    )
  }

  // MARK: the trace

  /// Seconds. The console waits for an answer for ten.
  private static let longestTrace = 8.0
  /// The newest campaigns to look at, because the registry is asked for each device and campaign.
  private static let mostCampaigns = 200
  /// The newest requests in an answer.
  private static let mostRequests = 10

  func trace(_ order: TraceOrder, then: @escaping @Sendable (LetterOutcome) -> Void) {
    do {
      try startThread(named: "trace") {
        do { then(LetterOutcome(details: try answer(order))) } catch { then(LetterOutcome(failure: "\(error)")) }
      }
    } catch { then(LetterOutcome(failure: "\(error)")) }
  }

  private func answer(_ order: TraceOrder) throws -> [UInt8] {
    let store = try configuration.registry.map { try RegistrySession.open($0, configuration, isReading: true) }
    // A device that is unknown may still be in the trace.
    let history = try store.flatMap {
      try order.history(of: [Array((order.app ?? "").utf8)], in: $0, most: Self.mostCampaigns)
    }
    let reader = try TraceReader(configuration, subject: TraceSubject(order, history), within: Self.longestTrace)
    reader.handlesSignals = false
    reader.complain = { _ in }
    // A fleet without a trace still has a registry.
    do { try reader.run() } catch let failure as CommandFailure where failure.status == .badInput && history != nil {}
    let story = try TraceStory(reader.rounds, history, store, prefix: configuration.prefix).newest(Self.mostRequests)
    let text = TraceText(prefix: configuration.prefix).text(of: story, newestFirst: true)
    let answer: JSONObject = [
      "rounds": JSONRaw(JSONObjectWriter.array(story.json)), "text": text, "left_out": reader.leftOut,
    ]
    return answer.line
  }
}

/// The thread of one walk. The gateway's thread only makes it, starts it, and posts to its loop.
private final class WalkThread: @unchecked Sendable {
  // `use` sets these before the thread starts. Afterwards only that thread uses them; all threads may use `mailbox`.
  private var walk: LetterWalk?
  private var details: () -> JSONObject = { [:] }
  private var notices: [String] = []
  private var mailbox: Mailbox?

  func use(_ walk: LetterWalk, _ details: @escaping () -> JSONObject) {
    walk.handlesSignals = false
    walk.complain = { [weak self] in self?.notices.append($0) }
    (self.walk, self.details, mailbox) = (walk, details, walk.loop.mailbox)
  }

  func run(
    progress: @escaping @Sendable (Int, Int) -> Void, pause: Double, then: @Sendable (LetterOutcome) -> Void
  ) {
    guard let walk else { return }
    report(walk, progress, pause)
    var failure: String?
    do { try walk.run() } catch { failure = "\(error)" }
    progress(walk.done, walk.expected)
    let notices: JSONObject = ["notices": JSONOptional(self.notices.isEmpty ? nil : self.notices.joined(separator: "; "))]
    then(LetterOutcome(count: walk.changed, details: (details() + notices).line, failure: failure))
    (self.walk, details) = (nil, { [:] })
  }

  private func report(_ walk: LetterWalk, _ progress: @escaping @Sendable (Int, Int) -> Void, _ pause: Double) {
    walk.loop.schedule(after: pause) { [weak self, unowned walk] in
      progress(walk.done, walk.expected)
      self?.report(walk, progress, pause)
    }
  }

  func stop() {
    mailbox?.post { [weak self] _ in self?.walk?.stop() }
  }
}
