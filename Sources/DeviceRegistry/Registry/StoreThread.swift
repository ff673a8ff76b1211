import Reactor
import Synchronization
import Wire

/// The thread that a shard's store lives on: it opens the store, does the jobs in order, and after a fault tries again with a growing
/// pause. What is shared with the loop is the queue alone.
final class StoreThread: Sendable {
  struct Job: Sendable {
    let tag: Int
    /// Which of the store's times of being available it was submitted in.
    let era: Int
    /// The same for changes, whose order counts: one that fails takes those behind it with it.
    let changeEra: Int
    /// Unix milliseconds as the loop had them.
    let now: Int64
    let request: RegistryRequest
  }

  struct Completion: Sendable {
    let tag: Int
    let result: Result<any Sendable, RegistryError>
  }

  /// The registry on the loop's side, touched on the loop's thread only.
  final class Front: @unchecked Sendable {
    weak var registry: Registry?
  }

  let front = Front()
  /// Changes of an earlier one fail unseen.
  let changeEra = Atomic<Int>(0)
  private let queue = JobQueue<Job>()
  private let mailbox: Mailbox
  private let backoff: Backoff
  private let open: @Sendable (_ isFirst: Bool) throws(RegistryError) -> any DeviceStore

  init(
    mailbox: Mailbox, backoff: Backoff, open: @escaping @Sendable (_ isFirst: Bool) throws(RegistryError) -> any DeviceStore
  ) {
    self.mailbox = mailbox
    self.backoff = backoff
    self.open = open
  }

  func start() throws(SystemError) { try startThread(named: "registry") { [self] in run() } }
  func submit(_ jobs: [Job]) { queue.append(jobs) }
  func close() { queue.close() }

  // MARK: On the thread

  private func run() {
    var store: (any DeviceStore)?
    var pause = backoff
    var failedAt: ContinuousClock.Instant?
    var fault: RegistryError?
    var era = 0
    var isFirst = true
    while true {
      do throws(RegistryError) {
        if let store { try store.probe(isWriting: fault?.isOfWriting == true) } else { store = try open(isFirst) }
        isFirst = false
        post { [era] in $0.becameAvailable(era) }
        guard let store else { return }
        let work = StoreWork(store, thread: self, pause: backoff)
        while let jobs = queue.take(Self.jobsPerTurn) {
          // Submitted before the loop knew of the fault: done now, they would overtake those that failed with it.
          let late = jobs.prefix { $0.era < era }
          if let fault { fail(Array(late), fault) }
          try work.answer(jobs[late.count...])
        }
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

  func fail(_ jobs: [Job], _ error: RegistryError) {
    post(jobs.map { Completion(tag: $0.tag, result: .failure(error)) })
  }

  func post(_ completions: [Completion]) {
    guard !completions.isEmpty else { return }
    post { $0.completed(completions) }
  }

  func post(_ body: @escaping @Sendable (Registry) -> Void) {
    mailbox.post { [front] _ in if let registry = front.registry { body(registry) } }
  }

  /// As many notes as share a transaction.
  static let jobsPerTurn = Note.mostTogether
}
