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
    let place = order.heldApp.map(LetterPlace.held) ?? .dead
    switch order.action {
    case .look(let shown, let withContent):
      return try LookTask(
        configuration, place, order.filter, shown: shown, body: withContent ? Self.mostBody : nil,
        most: order.heldApp == nil ? Self.mostLooked : nil)
    case .drop: return try DropTask(configuration, place, order.filter)
    case .replay(let rate): return try ReplayTask(configuration, order.filter, rate)
    }
  }

  static func words(_ error: any Error) -> String { (error as? CommandFailure)?.message ?? "\(error)" }
}

/// A walk for the gateway. It is made on one thread and then used only by the thread that runs it.
private class WalkTask {
  let walk: LetterWalk
  var notices: [String] = []

  init(_ walk: LetterWalk) { self.walk = walk }

  /// Removed or replayed messages.
  var count: Int { 0 }
  var details: JSONObject { [:] }
  func stop() {}
}

private final class LookTask: WalkTask {
  private final class Seen {
    var groups = LetterGroups()
    var letters: [[UInt8]] = []
  }

  private let seen = Seen()
  private let look: LetterLook

  init(
    _ configuration: Configuration, _ place: LetterPlace, _ filter: LetterFilter, shown: Int, body: Int?, most: Int?
  ) throws {
    var filter = filter
    filter.limit = nil
    look = try LetterLook(configuration, filter, place.for("look", most: most), maximumBody: body ?? 0) { [seen] letter in
      seen.groups.add(letter)
      if seen.letters.count < shown { seen.letters.append((body == nil ? letter.summary : letter.json).line) }
    }
    super.init(look)
  }

  override var details: JSONObject {
    [
      "matched": Int64(look.matched), "seen": Int64(look.done), "ready": Int64(look.expected),
      "groups": JSONRaw(JSONObjectWriter.array(seen.groups.json.map(\.line))),
      "letters": JSONRaw(JSONObjectWriter.array(seen.letters)),
    ]
  }

  override func stop() { look.stop() }
}

private final class DropTask: WalkTask {
  private let look: LetterLook

  init(_ configuration: Configuration, _ place: LetterPlace, _ filter: LetterFilter) throws {
    look = try LetterLook(configuration, filter, place.for("drop"), isRemoving: true)
    super.init(look)
  }

  override var count: Int { look.matched }
  override func stop() { look.stop() }
}

private final class ReplayTask: WalkTask {
  private let replay: LetterReplay

  init(_ configuration: Configuration, _ filter: LetterFilter, _ rate: Double?) throws {
    replay = try LetterReplay(configuration, filter, rate: rate, isDry: false)
    replay.showsProgress = false
    super.init(replay)
  }

  override var count: Int { replay.replayed }
  override var details: JSONObject { DeadCommand.json(replay, false) }
  override func stop() { replay.interrupt() }
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
    then(LetterOutcome(count: task.count, details: (task.details + notices).line, failure: failure))
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
