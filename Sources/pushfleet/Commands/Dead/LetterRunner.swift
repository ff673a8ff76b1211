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

  init(_ configuration: Configuration) { self.configuration = configuration }

  func begin(
    _ order: LetterOrder, progress: @escaping @Sendable (Int, Int) -> Void, then: @escaping @Sendable (LetterOutcome) -> Void
  ) -> any LetterRun {
    let thread = WalkThread()
    do {
      let task = try task(for: order)
      task.walk.handlesSignals = false
      task.walk.complain = { [weak task] in task?.notices.append($0) }
      thread.use(task)
      try startThread(named: "letters") { thread.run(progress: progress, pause: Self.pause, then: then) }
    } catch { then(LetterOutcome(failure: Self.words(error))) }
    return thread
  }

  private func task(for order: LetterOrder) throws -> WalkTask {
    let place = LetterPlace(order.queue)
    switch order.action {
    case .look(let shown, let withContent):
      return try look(place, order, shown: shown, body: withContent ? Self.mostBody : nil)
    case .drop:
      let look = try LetterLook(configuration, order.filter, place.for("drop"), isRemoving: true)
      return WalkTask(look, stop: look.stop, count: { look.matched })
    case .replay(let rate):
      let replay = try LetterReplay(configuration, order.filter, rate: rate, isDry: false)
      replay.showsProgress = false
      return WalkTask(
        replay, stop: replay.interrupt, count: { replay.replayed }, details: { DeadCommand.json(replay, false) })
    }
  }

  private func look(_ place: LetterPlace, _ order: LetterOrder, shown: Int, body: Int?) throws -> WalkTask {
    var filter = order.filter
    filter.limit = nil
    var groups = LetterGroups()
    var letters: [[UInt8]] = []
    let most = order.queue == .dead ? Self.mostLooked : nil
    let look = try LetterLook(configuration, filter, place.for("look", most: most), maximumBody: body ?? 0) { letter in
      groups.add(letter)
      if letters.count < shown { letters.append((body == nil ? letter.summary : letter.json).line) }
    }
    return WalkTask(
      look, stop: look.stop,
      details: {
        [
          "matched": Int64(look.matched), "seen": Int64(look.done), "ready": Int64(look.expected),
          "groups": JSONRaw(JSONObjectWriter.array(groups.json.map(\.line))),
          "letters": JSONRaw(JSONObjectWriter.array(letters)),
        ]
      })
  }

  static func words(_ error: any Error) -> String { (error as? CommandFailure)?.message ?? "\(error)" }
}

/// A walk for the gateway. It is made on one thread and then used only by the thread that runs it.
private final class WalkTask {
  let walk: LetterWalk
  let stop: () -> Void
  /// Removed or replayed messages.
  let count: () -> Int
  let details: () -> JSONObject
  var notices: [String] = []

  init(
    _ walk: LetterWalk, stop: @escaping () -> Void, count: @escaping () -> Int = { 0 },
    details: @escaping () -> JSONObject = { [:] }
  ) {
    self.walk = walk
    self.stop = stop
    self.count = count
    self.details = details
  }
}

/// The thread of one walk. The gateway's thread only makes it, starts it, and posts to its loop.
private final class WalkThread: LetterRun, @unchecked Sendable {
  // Set before the thread starts. Afterwards only that thread uses it; `mailbox` may be used by all.
  private var task: WalkTask?
  private var mailbox: Mailbox?

  func use(_ task: WalkTask) {
    self.task = task
    mailbox = task.walk.loop.mailbox
  }

  func run(
    progress: @escaping @Sendable (Int, Int) -> Void, pause: Double, then: @Sendable (LetterOutcome) -> Void
  ) {
    guard let task else { return }
    report(task, progress, pause)
    var failure: String?
    do { try task.walk.run() } catch { failure = LetterRunner.words(error) }
    progress(task.walk.done, task.walk.expected)
    let notices: JSONObject = ["notices": JSONOptional(task.notices.isEmpty ? nil : task.notices.joined(separator: "; "))]
    then(LetterOutcome(count: task.count(), details: (task.details() + notices).line, failure: failure))
    self.task = nil
  }

  private func report(_ task: WalkTask, _ progress: @escaping @Sendable (Int, Int) -> Void, _ pause: Double) {
    task.walk.loop.schedule(after: pause) { [weak self, unowned task] in
      progress(task.walk.done, task.walk.expected)
      self?.report(task, progress, pause)
    }
  }

  func stop() {
    mailbox?.post { [weak self] _ in self?.task?.stop() }
  }
}
