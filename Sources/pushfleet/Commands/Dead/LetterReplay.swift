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
  private(set) var isInterrupted = false
  private var route: LetterRoute?
  private var messageID: String?
  /// True while a copy waits for its confirmation.
  private var isPublished = false
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

  /// Numbers the letters, so that a delayed action never applies to another letter.
  private var turn = 0

  init(
    _ configuration: Configuration, _ filter: LetterFilter, rate: Double?, isDry: Bool, hold: Double = LetterWalk.longestHold
  ) throws {
    self.filter = filter
    self.rate = rate
    self.isDry = isDry
    try super.init(configuration, .dead.for("replay"), maximumBody: isDry ? 0 : Self.largestBody, hold: hold)
  }

  override var isEnough: Bool { isInterrupted || filter.limit.map { matched >= $0 } ?? false }

  /// The letters of ten seconds.
  override var wantedPortion: Int { rate.map { max(10, Int(min($0, 1e6) * 10)) } ?? .max }

  override func visit(_ delivery: Delivery) -> Step {
    showProgress()
    let letter = Letter(delivery, topology)
    guard filter.matches(letter) else { return .keep }
    matched += 1
    do throws(LetterRoute.Obstacle) {
      let route = try LetterRoute(of: delivery, topology)
      if isDry {
        sent[route.queue, default: 0] += 1
        return .keep
      }
      self.route = route
      messageID = letter.messageID
      body = delivery.body
      publishWhenDue()
      return .wait
    } catch {
      refused[error.description, default: 0] += 1
      return .keep
    }
  }

  private var body: [UInt8] = []

  private func publishWhenDue() {
    let start = begun ?? loop.now
    begun = start
    let pause = rate.map { start.advanced(bySeconds: Double(replayed) / $0).seconds(since: loop.now) } ?? 0
    if pause > 0 { publish(after: pause) } else { publish() }
  }

  /// Skips if the current letter has changed or was given back meanwhile.
  private func publish(after pause: Double) {
    turn += 1
    loop.schedule(after: pause) { [weak self, turn] in
      if let self, turn == self.turn { publish() }
    }
  }

  private func publish() {
    guard let route, !isPublished, !isEnding else { return }
    if isInterrupted { return conclude(.keep) }
    guard let publisher, publisher.canPublish else { return }
    isPublished = true
    publisher.publish(exchange: route.exchange, routingKey: route.routingKey, properties: route.properties, body: body, tag: 0)
  }

  override func publisherReady(_ publisher: Publisher) {
    if route != nil, !isPublished { publishWhenDue() }
  }

  override func confirmed(_ tag: Int) {
    isPublished = false
    if let queue = route?.queue { sent[queue, default: 0] += 1 }
    replayed += 1
    conclude(.remove)
  }

  override func failed(_ tag: Int, _ failure: PublishFailure) {
    isPublished = false
    switch failure {
    case .nacked:
      reportFull()
      publish(after: 1)
    case .returned: refuse("no queue takes it; `pushfleet topology` declares what is missing")
    case .unencodable: refuse("its properties are too large to be published again")
    case .channelClosed(.notFound(let what)): refuse("\(what); `pushfleet topology` declares what is missing")
    case .channelClosed(.accessRefused(let what)): fail(.unavailable, "\(what); \(progress)")
    case .channelClosed(let reason): refuse("the broker refuses it: \(reason)")
    case .timedOut, .connectionLost: fail(.unavailable, "the connection to the broker was lost; \(doubt); \(progress)")
    }
  }

  private func refuse(_ reason: String) {
    refused[reason, default: 0] += 1
    conclude(.keep)
  }

  private func conclude(_ step: Step) {
    forget()
    settle(step)
  }

  private func forget() {
    turn += 1
    route = nil
    body = []
  }

  override var canGiveBack: Bool { !isPublished }

  override func givesBack() {
    // The letter is delivered and counted again.
    if route != nil { matched -= 1 }
    forget()
  }

  // MARK: words

  private var doubt: String {
    "it is unknown whether the letter \(messageID ?? "(without an id)") was sent: it is still in \(topology.deadQueue), and may be there twice"
  }

  override var progress: String {
    (isPublished ? "\(doubt); " : "") + "\(replayed) replayed; the same command goes on with the rest"
  }

  override func interrupt() {
    if isInterrupted { return fail(.interrupted, "interrupted: \(progress)") }
    isInterrupted = true
    if isPublished {
      loop.schedule(after: Self.answerTimeout) { [weak self] in
        if let self, isPublished { interrupt() }
      }
      return
    }
    if route != nil { conclude(.keep) } else { end() }
  }

  override func blocked(_ publisher: Publisher, reason: String) {
    notice("the broker accepts no messages now (\(reason)); waiting")
  }

  private func reportFull() {
    guard loop.now >= nextReport, let queue = route?.queue else { return }
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

  override func end() {
    if !isEnding {
      bar?.update(done)
      bar?.clear()
    }
    super.end()
  }
}
