import Broker
import DeviceRegistry
import Logging
import PushCore
import Reactor
import StatusHTTP

/// The orders on messages that operators have given to this process. The orders on one queue are carried out one after the other,
/// because two of them would see only a part of it each. Confined to the loop's thread.
final class LetterJobs {
  enum State: String {
    case waiting, running, done, failed, stopped
  }

  /// Asks whether an order may begin. The answer is why not, or nil.
  typealias Check = (_ then: @escaping (_ obstacle: String?) -> Void) -> Void

  struct Job {
    let number: Int
    let order: LetterOrder
    let operation: FleetOperation
    /// The operation that records an operator's stop; nil if no operator has stopped it.
    var stop: FleetOperation?
    let began: Int64
    var state = State.waiting
    var done = 0
    var expected = 0
    var ended: Int64?
    /// It may have changed its queue.
    var hasBegun = false
    var outcome = LetterOutcome()
    var check: Check?
    /// Gets the outcome of a look; nil for an order that changes the queue.
    var answer: ((LetterOutcome) -> Void)?
    var isLook: Bool { answer != nil }
  }

  private static let mostRunning = 4
  /// Looks and other orders are counted apart.
  private static let mostWaiting = 16
  /// Seconds within which a look is answered. The console waits for ten.
  private static let longestLook = 8.0
  /// Seconds between two attempts to record an operation, and the number of attempts.
  private static let (recordPause, recordAttempts) = (1.0, 60)
  /// Orders that changed a queue and have ended.
  private static let mostKept = 50

  private let registry: RegistryClient
  private let context: GatewayContext
  private let side: LoopSide<LetterJobs>
  /// Random, because several processes may serve one address.
  private var lastNumber = Int.random(in: 1..<1 << 40)
  private(set) var jobs: [Job] = []
  /// What stops each running job, by its number; nil until the order has begun.
  private var runs: [Int: (@Sendable () -> Void)?] = [:]
  /// What the registry doesn't know yet of each job, by its number: its beginning, then its end.
  private var unrecorded: [Int: [Job]] = [:]

  init(_ registry: RegistryClient, _ context: GatewayContext) {
    self.registry = registry
    self.context = context
    side = LoopSide(context.loop.mailbox)
    side.handler = self
  }

  var isIdle: Bool { runs.isEmpty && unrecorded.isEmpty }

  /// - Parameters:
  ///   - check: asked when the order's turn has come.
  ///   - answer: called once with the outcome of a look; nil for an order that changes the queue.
  /// - Returns: the job's number.
  @discardableResult
  func add(
    _ order: LetterOrder, _ operation: FleetOperation, check: Check? = nil, answer: ((LetterOutcome) -> Void)? = nil
  ) throws(Fault) -> Int {
    let isLook = answer != nil
    guard jobs.count(where: { $0.state == .waiting && $0.isLook == isLook }) < Self.mostWaiting else {
      throw .unavailable("too many operations wait")
    }
    if isLook, let job = jobs.first(where: { $0.state == .running && !$0.isLook && $0.order.queue == order.queue }) {
      throw .unavailable(
        "job \(job.number) works on these messages, so a look would see a part of them: wait for it, or stop it")
    }
    lastNumber += 1
    let number = lastNumber
    jobs.append(
      Job(number: number, order: order, operation: operation, began: context.loop.wallClock, check: check, answer: answer))
    if isLook { context.loop.schedule(after: Self.longestLook) { [weak self] in self?.giveUp(number) } }
    beginNext()
    return number
  }

  private func index(_ number: Int) -> Int? { jobs.firstIndex { $0.number == number } }

  /// - Parameter order: the operation that records an operator's stop; nil if the process itself stops the job.
  /// - Returns: false if the job has ended already.
  func stop(_ number: Int, as order: FleetOperation? = nil) -> Bool {
    guard let index = index(number) else { return false }
    switch jobs[index].state {
    case .waiting: end(index, .stopped, LetterOutcome(failure: "an operator stopped it before it began"))
    case .running:
      jobs[index].state = .stopped
      jobs[index].stop = order
      if let stop = runs[number] { stop?() }
    case .done, .failed, .stopped: return false
    }
    return true
  }

  /// Answers a look that lasts too long.
  private func giveUp(_ number: Int) {
    guard let index = index(number) else { return }
    jobs[index].answer?(
      LetterOutcome(failure: "a look may last \(Int(Self.longestLook)) s; those of `pushfleet dead` and `held` may last longer")
    )
    jobs[index].answer = { _ in }
    _ = stop(number)
  }

  /// Begins no more orders, and ends those that are being carried out.
  func close() {
    for job in jobs where job.state == .waiting || job.state == .running { _ = stop(job.number) }
  }

  private func beginNext() {
    while runs.count < Self.mostRunning {
      let busy = jobs.filter { runs[$0.number] != nil }.map(\.order.queue)
      guard let index = jobs.firstIndex(where: { $0.state == .waiting && !busy.contains($0.order.queue) }) else { return }
      let number = jobs[index].number
      jobs[index].state = .running
      runs[number] = .some(nil)
      guard let check = jobs[index].check else {
        begin(number)
        continue
      }
      check { [weak self] obstacle in
        if let obstacle { self?.ended(number, LetterOutcome(failure: obstacle)) } else { self?.begin(number) }
      }
    }
  }

  private func begin(_ number: Int) {
    guard let index = index(number), jobs[index].state == .running else { return ended(number, LetterOutcome()) }
    jobs[index].hasBegun = true
    if !jobs[index].isLook { record(jobs[index]) }
    runs[number] = context.letters.begin(jobs[index].order) { [side] done, expected in
      side.note { $0.progressed(number, done, expected) }
    } then: { [side] outcome in
      side.note { $0.ended(number, outcome) }
    }
  }

  private func progressed(_ number: Int, _ done: Int, _ expected: Int) {
    guard let index = index(number) else { return }
    (jobs[index].done, jobs[index].expected) = (done, expected)
    jobs[index].check? { [weak self] obstacle in
      guard obstacle != nil, let self, let index = self.index(number), jobs[index].state == .running else { return }
      jobs[index].outcome.failure = obstacle
      _ = stop(number)
    }
  }

  private func ended(_ number: Int, _ outcome: LetterOutcome) {
    runs[number] = nil
    if let index = index(number) {
      let wasStopped = jobs[index].state == .stopped
      var outcome = outcome
      outcome.failure = outcome.failure ?? jobs[index].outcome.failure
      end(index, wasStopped ? .stopped : outcome.failure == nil ? .done : .failed, outcome)
    }
    beginNext()
  }

  private func end(_ index: Int, _ state: State, _ outcome: LetterOutcome) {
    jobs[index].state = state
    jobs[index].outcome = outcome
    jobs[index].ended = context.loop.wallClock
    let job = jobs[index]
    if let answer = job.answer {
      jobs.remove(at: index)
      return answer(outcome)
    }
    if job.hasBegun { record(job) }
    let old = jobs.filter { $0.ended != nil }.dropLast(Self.mostKept).map(\.number)
    jobs.removeAll { old.contains($0.number) }
  }

  /// Records the beginning or the end of the job. The end waits until its beginning is recorded.
  private func record(_ job: Job) {
    unrecorded[job.number, default: []].append(job)
    if unrecorded[job.number]?.count == 1 { recordFirst(of: job.number) }
  }

  /// Tries for a minute. After that an ended job says that the audit lacks it.
  private func recordFirst(of number: Int, attempt: Int = 1) {
    guard let job = unrecorded[number]?.first else {
      unrecorded[number] = nil
      return
    }
    var operation = job.stop ?? job.operation
    if case .messages(var removal) = operation.action {
      removal.count = job.ended.map { _ in job.outcome.count }
      if job.state == .stopped, job.ended != nil { removal.action += " stopped" }
      operation.action = .messages(removal)
    }
    registry.call(.write(.campaigns) { [operation] store, now in try store.perform(operation, now: now) }) {
      [weak self] result in
      guard let self else { return }
      if case .failure(let error) = result {
        guard attempt == Self.recordAttempts else {
          if attempt == 1 { context.log.warning("an operation isn't recorded yet", ["job": number, "reason": "\(error)"]) }
          context.loop.schedule(after: Self.recordPause) { [weak self] in self?.recordFirst(of: number, attempt: attempt + 1) }
          return
        }
        context.log.error("an operation isn't recorded", ["messages": job.outcome.count, "reason": "\(error)"])
        if job.ended != nil, let index = index(number) {
          jobs[index].state = .failed
          jobs[index].outcome.failure = "the audit has no record of it: \(error)"
        }
      }
      unrecorded[number]?.removeFirst()
      recordFirst(of: number)
    }
  }
}

extension LetterJobs.Job {
  var json: JSONObject {
    var removal: JSONObject = [:]
    if case .messages(let messages) = operation.action {
      let filter = JSONObject(messages.filter.map { ($0.name, $0.value) })
      removal = ["action": messages.action, "queue": messages.queue, "app": messages.app, "filter": filter]
    }
    return ["job": number] + removal + [
      "by": operation.actor, "reason": operation.reason, "state": state.rawValue, "done": done, "expected": expected,
      "began": Timestamp.text(began), "ended": ended.map(Timestamp.text), "messages": ended.map { _ in outcome.count },
      "details": JSONRaw(outcome.details), "failure": outcome.failure,
    ]
  }
}
