import AMQP
import Broker
import Settings
import Wire

/// Sends letters back to where they came from, one at a time. A letter is removed once the broker has confirmed its copy, and
/// only then the next follows. So an interruption loses no letter and duplicates at most one.
final class LetterReplay: LetterWalk {
  private let filter: LetterFilter
  /// Letters per second; nil for no limit.
  private let rate: Double?
  private let isDry: Bool
  /// Letters sent, or with `isDry` to be sent, by queue.
  private(set) var sent: [String: Int] = [:]
  /// Letters that can't be sent back, by reason.
  private(set) var refused: [String: Int] = [:]
  private(set) var replayed = 0
  override var changed: Int { replayed }
  private var matched = 0
  /// The letter whose copy waits for its confirmation, and the copy's queue.
  private var published: (letter: Letter, queue: String)?
  /// Of the last copy; nil before.
  private var outcome: Outcome?
  private var begun: MonotonicTime?
  private var bar: ProgressBar?
  /// False if nobody sees the progress bar.
  var showsProgress = true
  private var nextReport = MonotonicTime(nanoseconds: 0)
  /// Seconds between two messages about a full queue.
  private static let reportPause = 10.0
  private static let largestBody = 512 << 20
  /// Seconds that an interrupted replay waits for the confirmation of its current letter.
  private static let answerTimeout = 5.0

  private enum Outcome {
    case confirmed, full
    /// Sending the letter again wouldn't help.
    case refused(String)
  }

  init(
    _ configuration: Configuration, _ filter: LetterFilter, rate: Double?, isDry: Bool, hold: Double = LetterWalk.longestHold
  ) throws {
    self.filter = filter
    self.rate = rate
    self.isDry = isDry
    try super.init(configuration, .dead.for("replay"), maximumBody: isDry ? 0 : Self.largestBody, hold: hold)
  }

  override var isEnough: Bool { filter.limit.map { matched >= $0 } ?? false }

  /// The letters of ten seconds.
  override var wantedPortion: Int { rate.map { max(10, Int(min($0, 1e6) * 10)) } ?? .max }

  override func work() throws {
    try super.work()
    bar?.update(done)
    bar?.clear()
  }

  override func visit(_ delivery: Delivery) throws -> Step {
    showProgress()
    let letter = Letter(delivery, topology)
    guard filter.matches(letter) else { return .keep }
    matched += 1
    let route: LetterRoute
    do throws(LetterRoute.Obstacle) { route = try LetterRoute(of: delivery, topology) } catch {
      return refuse(error.description)
    }
    if isDry {
      sent[route.queue, default: 0] += 1
      return .keep
    }
    return try send(letter, route)
  }

  /// Publishes the copy when it is due, and again while its queue is full.
  private func send(_ letter: Letter, _ route: LetterRoute) throws -> Step {
    let start = begun ?? loop.now
    begun = start
    var pause = rate.map { start.advanced(bySeconds: Double(replayed) / $0).seconds(since: loop.now) } ?? 0
    while true {
      if pause > 0 { try wait(upTo: pause) { mustReturn } }
      try wait { mustReturn || publisher?.canPublish == true }
      if isStopped { return .keep }
      if mustReturn {
        // The letter is delivered and counted again.
        matched -= 1
        return .postpone
      }
      switch try publish(letter, route) {
      case .confirmed: return .removed
      case .full:
        reportFull(route.queue)
        pause = 1
      case .refused(let reason): return refuse(reason)
      }
    }
  }

  private func publish(_ letter: Letter, _ route: LetterRoute) throws -> Outcome {
    outcome = nil
    published = (letter, route.queue)
    publisher?.publish(
      exchange: route.exchange, routingKey: route.routingKey, properties: route.properties, body: letter.delivery.body, tag: 0)
    try wait { outcome != nil || isStopped }
    guard try wait(upTo: Self.answerTimeout, until: { outcome != nil }), let outcome else {
      throw CommandFailure(.interrupted, "interrupted: \(progress)")
    }
    return outcome
  }

  /// Removes the letter at once: the same turn may bring the end of the connection.
  override func confirmed(_ tag: Int) {
    guard let published else { return }
    sent[published.queue, default: 0] += 1
    replayed += 1
    remove(published.letter.delivery)
    (self.published, outcome) = (nil, .confirmed)
  }

  override func failed(_ tag: Int, _ failure: PublishFailure) {
    let progressInDoubt = progress
    published = nil
    switch failure {
    case .timedOut, .connectionLost, .channelClosed(.closedByOperator), .channelClosed(.closedByBroker):
      fail(.unavailable, "the connection to the broker was lost; \(progressInDoubt)")
    case .nacked: outcome = .full
    case .returned: outcome = .refused("no queue takes it; `pushfleet topology` declares what is missing")
    case .unencodable: outcome = .refused("its properties are too large to be published again")
    case .channelClosed(.notFound(let what)): outcome = .refused("\(what); `pushfleet topology` declares what is missing")
    case .channelClosed(.accessRefused(let what)): fail(.unavailable, "\(what); \(progress)")
    case .channelClosed(let reason): outcome = .refused("the broker refuses it: \(reason)")
    }
  }

  private func refuse(_ reason: String) -> Step {
    refused[reason, default: 0] += 1
    return .keep
  }

  // MARK: words

  override var progress: String {
    let doubt = published.map {
      "it is unknown whether the letter \($0.letter.messageID ?? "(without an id)") was sent: it is still in \(topology.deadQueue), and may be there twice; "
    }
    return "\(doubt ?? "")\(replayed) replayed; the same command goes on with the rest"
  }

  override func interrupt() {
    if isStopped { fail(.interrupted, "interrupted: \(progress)") } else { stop() }
  }

  override func blocked(_ publisher: Publisher, reason: String) {
    notice("the broker accepts no messages now (\(reason)); waiting")
  }

  private func reportFull(_ queue: String) {
    guard loop.now >= nextReport else { return }
    nextReport = loop.now.advanced(bySeconds: Self.reportPause)
    notice(
      "the queue \(topology.name(queue)) is full: \(replayed) replayed, the others wait until it has room (Ctrl-C ends)")
  }

  private func notice(_ sentence: String) {
    bar?.clear()
    complain(sentence)
  }

  private func showProgress() {
    guard showsProgress, !isDry else { return }
    bar = bar ?? ProgressBar("replaying", total: expected)
    bar?.update(done)
  }
}
