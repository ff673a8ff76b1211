import DeviceRegistry
import Wire

/// The registry shared by all workers: a real one, with faults.
final class SharedStore {
  enum Fault {
    /// The operation fails without effect.
    case before
    /// The operation has its effect, but reports a failure.
    case after
  }

  let store: DeviceStore
  /// Decides the fault of each operation.
  var fault: () -> Fault? = { nil }
  var isDown = false
  /// Most extra seconds for an operation.
  var slowest = 0.0

  init(_ store: DeviceStore) { self.store = store }
}

/// A worker's access to the shared registry, like a worker's registry thread: answers come later, in order, or the registry is
/// unavailable for a while.
final class StoreDoor: RegistryDoor {
  private struct Job {
    let tag: Int
    let request: RegistryRequest
    let now: Int64
    let changeEra: Int
  }

  private let shared: SharedStore
  private let time: Turn
  private weak var handler: (any RegistryHandler)?
  private var jobs: [Job] = []
  private var isBusy = false
  /// Why operations are refused; nil if they are accepted.
  private var fault: RegistryError?
  private var changeEra = 0
  private var isClosed = false
  private var pause = Backoff(base: 0.1, cap: 10)

  init(_ shared: SharedStore, time: Turn, handler: any RegistryHandler) {
    self.shared = shared
    self.time = time
    self.handler = handler
    time.schedule(after: 0.01) { [weak self] in self?.reopen() }
  }

  var waiting: Int { jobs.count }

  func submit(_ request: RegistryRequest, tag: Int) throws(RegistryError) {
    if isClosed { throw .unavailable(.down, "closed") }
    if let fault { throw fault }
    jobs.append(Job(tag: tag, request: request, now: time.wallClock, changeEra: changeEra))
    begin()
  }

  func withdrawChanges() { changeEra += 1 }

  func close() {
    isClosed = true
    handler = nil
    while let job = jobs.first {
      jobs.removeFirst()
      if !shared.isDown, !isWithdrawn(job) { _ = try? job.request.answer(shared.store, now: job.now) }
    }
  }

  /// The worker has died: operations that haven't begun never happen.
  func abandon() {
    isClosed = true
    handler = nil
    jobs = []
  }

  private func begin() {
    guard !isBusy, fault == nil, !jobs.isEmpty else { return }
    isBusy = true
    let delay = Double(Int.random(in: 0...4, using: &time.random)) / 1000
    let more = shared.slowest > 0 ? Double.random(in: 0...shared.slowest, using: &time.random) : 0
    time.schedule(after: delay + more) { [weak self] in self?.work() }
  }

  /// Performs all waiting operations, like one turn of the thread.
  private func work() {
    isBusy = false
    guard !isClosed else { return }
    while let job = jobs.first {
      if shared.isDown { return fail(with: .unavailable(.down, "simulated: the registry is down")) }
      jobs.removeFirst()
      guard !isWithdrawn(job) else {
        handler?.registryAnswered(job.tag, .failure(.unavailable(.down, "the change has been given back")))
        continue
      }
      let planned = shared.fault()
      if planned == .before {
        jobs.insert(job, at: 0)
        return fail(with: .unavailable(.down, "simulated: failed before it was done"))
      }
      let together = [job] + takeNotes(behind: job)
      do throws(RegistryError) {
        let answers = try answer(together)
        if planned == .after {
          jobs.insert(contentsOf: together, at: 0)
          return fail(with: .unavailable(.down, "simulated: failed after it was done"))
        }
        pause.reset()
        for (job, answer) in zip(together, answers) { handler?.registryAnswered(job.tag, .success(answer)) }
      } catch .fenced {
        changeEra += 1
        handler?.registryAnswered(job.tag, .failure(.fenced))
      } catch {
        guard case .refused = error, together.count == 1 else {
          jobs.insert(contentsOf: together, at: 0)
          return fail(with: error)
        }
        handler?.registryAnswered(job.tag, .failure(error))
      }
    }
  }

  /// Takes the following notes that share a transaction with this one.
  private func takeNotes(behind job: Job) -> [Job] {
    guard case .note = job.request else { return [] }
    let end = jobs.firstIndex { if case .note = $0.request { false } else { true } } ?? jobs.count
    defer { jobs.removeFirst(end) }
    return Array(jobs[..<end])
  }

  private func answer(_ jobs: [Job]) throws(RegistryError) -> [any Sendable] {
    if jobs.count == 1 { return [try jobs[0].request.answer(shared.store, now: jobs[0].now)] }
    let notes = jobs.compactMap { job in if case .note(let note) = job.request { (note, job.now) } else { nil } }
    return try shared.store.note(notes).answers.map(\.value)
  }

  private func isWithdrawn(_ job: Job) -> Bool {
    if case .change = job.request { job.changeEra < changeEra } else { false }
  }

  /// Marks the registry as unavailable before it reports the failed operations.
  private func fail(with error: RegistryError) {
    fault = error
    changeEra += 1
    handler?.registryChanged(error)
    let failed = jobs
    jobs = []
    for job in failed { handler?.registryAnswered(job.tag, .failure(error)) }
    time.schedule(after: pause.next(using: &time.random)) { [weak self] in self?.reopen() }
  }

  private func reopen() {
    guard !isClosed else { return }
    guard !shared.isDown else {
      if fault == nil {
        fault = .unavailable(.down, "simulated: the registry is down")
        handler?.registryChanged(.unavailable(.down, "simulated: the registry is down"))
      }
      time.schedule(after: pause.next(using: &time.random)) { [weak self] in self?.reopen() }
      return
    }
    fault = nil
    handler?.registryChanged(nil)
    begin()
  }
}
