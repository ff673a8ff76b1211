import Reactor
import Wire

/// The thread that a shard's store lives on: it opens the store, does the jobs in order, and after a fault tries again with a growing
/// pause. What is shared with the loop is the queue alone.
final class StoreThread: Sendable {
  struct Job: Sendable {
    let tag: Int
    /// Which of the store's times of being available it was submitted in.
    let era: Int
    /// Unix milliseconds as the loop had them.
    let now: Int64
    let request: RegistryRequest
  }

  struct Completion: Sendable {
    let tag: Int
    let result: Result<RegistryAnswer, StoreError>
  }

  /// The registry on the loop's side, touched on the loop's thread only.
  final class Front: @unchecked Sendable {
    weak var registry: Registry?
  }

  let front = Front()
  private let queue = JobQueue<Job>()
  private let mailbox: Mailbox
  private let backoff: Backoff
  private let open: @Sendable () throws(StoreError) -> any DeviceStore

  init(mailbox: Mailbox, backoff: Backoff, open: @escaping @Sendable () throws(StoreError) -> any DeviceStore) {
    self.mailbox = mailbox
    self.backoff = backoff
    self.open = open
  }

  func start() throws(SystemError) { try startThread(named: "registry") { [self] in run() } }
  func submit(_ job: Job) { queue.append(job) }
  func close() { queue.close() }

  // MARK: On the thread

  private func run() {
    var store: (any DeviceStore)?
    var pause = backoff
    var failedAt: ContinuousClock.Instant?
    var fault: StoreError?
    var era = 0
    while true {
      do throws(StoreError) {
        if let store { try store.probe(after: fault) } else { store = try open() }
        post { [era] in $0.becameAvailable(era) }
        guard let store else { return }
        try work(store, era, fault)
        return
      } catch {
        if case .unusable = error { store = nil }
        if case .unavailable(.down, _) = error { store = nil }
        // The order matters: whoever is told of a failed request is to find the registry unavailable.
        post { $0.becameUnavailable(error) }
        fail(queue.takeAll(), error)
        // Only what has held for a while begins with a short pause again: on a full disk a probe succeeds and the next write fails.
        let now = ContinuousClock.now
        if let failedAt, now - failedAt > .seconds(2 * backoff.cap) { pause.reset() }
        failedAt = now
        fault = error
        era += 1
        guard queue.sleep(seconds: pause.next()) else { return }
      }
    }
  }

  /// Does jobs until the queue is closed.
  private func work(_ store: any DeviceStore, _ era: Int, _ fault: StoreError?) throws(StoreError) {
    while let jobs = queue.take(Self.jobsPerTurn) {
      // Submitted before the loop knew of the fault: done now, they would overtake those that failed with it.
      var at = jobs.prefix { $0.era < era }.count
      if let fault { fail(Array(jobs[..<at]), fault) }
      var completions: [Completion] = []
      completions.reserveCapacity(jobs.count)
      while at < jobs.count {
        let end = Self.endOfRun(jobs, from: at)
        do throws(StoreError) {
          if end - at > 1 {
            try applyTogether(jobs[at..<end], store, &completions)
          } else {
            completions.append(
              Completion(tag: jobs[at].tag, result: .success(try store.answer(jobs[at].request, now: jobs[at].now))))
          }
        } catch {
          if case .refused = error, end - at == 1 {
            completions.append(Completion(tag: jobs[at].tag, result: .failure(error)))
          } else {
            post(completions)
            post { $0.becameUnavailable(error) }
            fail(Array(jobs[at...]), error)
            throw error
          }
        }
        at = end
      }
      post(completions)
    }
  }

  /// Changes that follow each other share a transaction, and with it the wait for the disk; where the database refuses a value, each
  /// is tried by itself, so that it costs only its own change.
  private func applyTogether(
    _ jobs: ArraySlice<Job>, _ store: any DeviceStore, _ completions: inout [Completion]
  ) throws(StoreError) {
    var changes: [RegistryChange] = []
    for job in jobs { if case .apply(let more) = job.request { changes += more } }
    let answers: [ChangeAnswer]
    do throws(StoreError) {
      answers = try store.apply(changes, now: jobs.first?.now ?? 0)
    } catch {
      guard case .refused = error else { throw error }
      return try applyOneByOne(jobs, store, &completions)
    }
    var at = 0
    for job in jobs {
      guard case .apply(let more) = job.request else { continue }
      completions.append(Completion(tag: job.tag, result: .success(.changes(Array(answers[at..<at + more.count])))))
      at += more.count
    }
  }

  private func applyOneByOne(
    _ jobs: ArraySlice<Job>, _ store: any DeviceStore, _ completions: inout [Completion]
  ) throws(StoreError) {
    var answered: [Completion] = []
    for job in jobs {
      do throws(StoreError) {
        answered.append(Completion(tag: job.tag, result: .success(try store.answer(job.request, now: job.now))))
      } catch {
        guard case .refused = error else { throw error }
        answered.append(Completion(tag: job.tag, result: .failure(error)))
      }
    }
    completions += answered
  }

  private static func endOfRun(_ jobs: [Job], from start: Int) -> Int {
    var end = start + 1
    guard case .apply = jobs[start].request else { return end }
    while end < jobs.count, case .apply = jobs[end].request { end += 1 }
    return end
  }

  private func fail(_ jobs: [Job], _ error: StoreError) {
    post(jobs.map { Completion(tag: $0.tag, result: .failure(error)) })
  }

  private func post(_ completions: [Completion]) {
    guard !completions.isEmpty else { return }
    post { $0.completed(completions) }
  }

  private func post(_ body: @escaping @Sendable (Registry) -> Void) {
    mailbox.post { [front] _ in if let registry = front.registry { body(registry) } }
  }

  private static let jobsPerTurn = 128
}
