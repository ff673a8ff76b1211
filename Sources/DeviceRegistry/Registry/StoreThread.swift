import Reactor
import Synchronization
import Wire

/// The thread of a shard's store: opens it, processes jobs in order, retries after faults. It shares only the queue with the
/// loop.
final class StoreThread: Sendable {
  struct Job: Sendable {
    let tag: Int
    /// Number of the store's availability period in which the job was submitted.
    let era: Int
    /// The same for changes. Their order matters, so a failed change fails the later ones too.
    let changeEra: Int
    /// Unix milliseconds, from the loop's clock.
    let now: Int64
    let request: RegistryRequest
  }

  struct Completion: Sendable {
    let tag: Int
    let result: Result<any Sendable, RegistryError>
  }

  /// Only accessed on the loop's thread.
  nonisolated(unsafe) weak var registry: Registry?
  /// Changes of an earlier era fail without being tried.
  let changeEra = Atomic<Int>(0)
  private let queue = JobQueue<Job>()
  private let mailbox: Mailbox
  private let backoff: Backoff
  private let open: @Sendable (_ isFirst: Bool) throws(RegistryError) -> DeviceStore

  init(
    mailbox: Mailbox, backoff: Backoff, open: @escaping @Sendable (_ isFirst: Bool) throws(RegistryError) -> DeviceStore
  ) {
    self.mailbox = mailbox
    self.backoff = backoff
    self.open = open
  }

  func start() throws(SystemError) { try startThread(named: "registry") { [self] in run() } }
  func submit(_ jobs: [Job]) { queue.append(jobs) }
  func close() { queue.close() }

  private func run() {
    var store: DeviceStore?
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
          // Jobs from before the loop knew of the fault must fail. Otherwise they would overtake the failed ones.
          let late = jobs.prefix { $0.era < era }
          if let fault { fail(Array(late), fault) }
          try work.answer(jobs[late.count...])
        }
        return
      } catch {
        if case .unusable = error { store = nil }
        if case .unavailable(.down, _) = error { store = nil }
        // Order matters: a caller that receives a failure must already see the registry as unavailable.
        post { $0.becameUnavailable(error) }
        fail(queue.takeAll(), error)
        // The pause is reset only after a longer success: on a full disk a probe succeeds and the next write fails.
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
    mailbox.post { [self] _ in if let registry { body(registry) } }
  }

  static let jobsPerTurn = Note.mostTogether
}
