import Broker
import DeviceRegistry
import Logging
import PushCore
import Reactor
import Wire

/// The orders on messages that operators have given to this process. They are carried out one after the other, because two orders
/// on one queue would see only a part of it each. Confined to the loop's thread.
final class LetterJobs {
  enum State: String {
    case waiting, running, done, failed, stopped
  }

  struct Job {
    let number: Int
    let order: LetterOrder
    let operation: FleetOperation
    let began: Int64
    var state = State.waiting
    var done = 0
    var expected = 0
    var ended: Int64?
    var outcome = LetterOutcome()
    /// Gets the outcome of a look; nil for an order that changes the queue.
    var answer: ((LetterOutcome) -> Void)?
  }

  private static let mostWaiting = 16
  /// Orders that changed a queue and have ended.
  private static let mostKept = 50

  private let worker: any LetterWorker
  private let registry: RegistryClient
  private let topology: Topology
  private let time: Turn
  private let log: Log
  private let side: LoopSide<LetterJobs>
  private var lastNumber = 0
  private(set) var jobs: [Job] = []
  private var run: (any LetterRun)?

  init(_ worker: any LetterWorker, _ registry: RegistryClient, _ context: GatewayContext) {
    self.worker = worker
    self.registry = registry
    topology = context.topology
    time = context.loop.time
    log = context.log
    side = LoopSide(context.loop.mailbox)
    side.desk = self
  }

  var isIdle: Bool { run == nil }

  /// - Parameter answer: called once with the outcome of a look; nil for an order that changes the queue.
  /// - Returns: the job's number; nil if too many orders wait.
  func add(_ order: LetterOrder, _ operation: FleetOperation, answer: ((LetterOutcome) -> Void)? = nil) -> Int? {
    guard jobs.count(where: { $0.state == .waiting }) < Self.mostWaiting else { return nil }
    lastNumber += 1
    jobs.append(
      Job(number: lastNumber, order: order, operation: operation, began: time.wallClock, answer: answer))
    beginNext()
    return lastNumber
  }

  /// - Returns: false if the job has ended already.
  func stop(_ number: Int) -> Bool {
    guard let index = jobs.firstIndex(where: { $0.number == number }) else { return false }
    switch jobs[index].state {
    case .waiting:
      end(index, .stopped, LetterOutcome(failure: "an operator stopped it before it began"))
      return true
    case .running:
      jobs[index].state = .stopped
      run?.stop()
      return true
    case .done, .failed, .stopped: return false
    }
  }

  /// Begins no more orders, and ends the one that is being carried out.
  func close() {
    for job in jobs where job.state == .waiting || job.state == .running { _ = stop(job.number) }
  }

  private func beginNext() {
    guard run == nil, let index = jobs.firstIndex(where: { $0.state == .waiting }) else { return }
    jobs[index].state = .running
    let number = jobs[index].number
    run = worker.begin(jobs[index].order) { [side] done, expected in
      side.note { $0.progressed(number, done, expected) }
    } then: { [side] outcome in
      side.note { $0.ended(number, outcome) }
    }
  }

  private func progressed(_ number: Int, _ done: Int, _ expected: Int) {
    guard let index = jobs.firstIndex(where: { $0.number == number }) else { return }
    (jobs[index].done, jobs[index].expected) = (done, expected)
  }

  private func ended(_ number: Int, _ outcome: LetterOutcome) {
    run = nil
    if let index = jobs.firstIndex(where: { $0.number == number }) {
      let wasStopped = jobs[index].state == .stopped
      end(index, wasStopped ? .stopped : outcome.failure == nil ? .done : .failed, outcome)
    }
    beginNext()
  }

  private func end(_ index: Int, _ state: State, _ outcome: LetterOutcome) {
    jobs[index].state = state
    jobs[index].outcome = outcome
    jobs[index].ended = time.wallClock
    let job = jobs[index]
    if let answer = job.answer {
      jobs.remove(at: index)
      return answer(outcome)
    }
    record(job)
    let old = jobs.filter { $0.ended != nil }.dropLast(Self.mostKept).map(\.number)
    jobs.removeAll { old.contains($0.number) }
  }

  private func record(_ job: Job) {
    guard job.outcome.count > 0 else { return }
    var operation = job.operation
    if case .messages(var removal) = operation.action {
      removal.count = job.outcome.count
      operation.action = .messages(removal)
    }
    registry.call(.write(.campaigns) { [operation] store, now in try store.perform(operation, now: now) }) { [log] result in
      if case .failure(let error) = result {
        log.error("an operation isn't recorded", ["messages": job.outcome.count, "reason": "\(error)"])
      }
    }
  }

  func write(_ job: Job, to object: inout JSONObjectWriter) {
    object.set("job", Int64(job.number))
    if case .messages(let removal) = job.operation.action {
      object.set("action", removal.action)
      object.set("queue", removal.queue)
      object.set("app", removal.app)
      object.set("filter", object: { for (name, value) in removal.filter { $0.set(name, value) } })
    }
    object.set("by", job.operation.actor)
    object.set("reason", job.operation.reason)
    object.set("state", job.state.rawValue)
    object.set("done", Int64(job.done))
    object.set("expected", Int64(job.expected))
    object.set("began", time: job.began)
    object.set("ended", time: job.ended)
    object.set("messages", job.ended.map { _ in Int64(job.outcome.count) })
    object.set("details", raw: job.outcome.details)
    object.set("failure", job.outcome.failure)
  }
}
