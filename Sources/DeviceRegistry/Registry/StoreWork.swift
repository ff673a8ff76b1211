import Wire

/// What a store thread does with its jobs for as long as the store answers.
///
/// A statement that runs into its time limit or into another's lock costs its own job: look-ups go on. Writes, which would wait for the same
/// lock one after the other, fail at once for a growing while, those of devices and those of campaigns each for themselves. What shows that
/// nothing answers any more is thrown.
final class StoreWork {
  typealias Job = StoreThread.Job
  typealias Completion = StoreThread.Completion

  private let store: any DeviceStore
  private unowned let thread: StoreThread
  private var completions: [Completion] = []
  private var postedAt = ContinuousClock.now

  /// By kind.
  private var writes: [Writes]
  /// Look-ups in a row that weren't answered in time.
  private var timeouts = 0

  /// How it stands with writes of one kind.
  private struct Writes {
    var fault: RegistryError?
    var resume = ContinuousClock.now
    var pause: Backoff
  }

  private static let mostTimeouts = 3
  /// Whoever waits for an answer goes on while others are still looked up.
  private static let longestBatch = Duration.milliseconds(3)

  init(_ store: any DeviceStore, thread: StoreThread, pause: Backoff) {
    self.store = store
    self.thread = thread
    writes = WriteKind.allCases.map { _ in Writes(pause: pause) }
  }

  /// Does jobs in order.
  /// - Throws: when the store is of no use any more; all of the jobs have been answered or have failed all the same.
  func answer(_ jobs: ArraySlice<Job>) throws(RegistryError) {
    var at = jobs.startIndex
    // Up to here each is done by itself.
    var alone = at
    while at < jobs.endIndex {
      let end = at < alone ? at + 1 : Self.endOfRun(jobs, from: at)
      if let refusal = refusal(of: jobs[at]) {
        failAlone(jobs[at..<end], refusal)
      } else {
        do throws(RegistryError) {
          worked(jobs[at], hasWritten: try answerRun(jobs[at..<end]))
        } catch .refused where end - at > 1 {
          // The database refuses a value of one of them, and has taken the others back with it.
          alone = end
          continue
        } catch .fenced {
          failAlone(jobs[at..<end], .fenced)
        } catch {
          if let fatal = judge(error, jobs[at].request) {
            flush()
            thread.post { $0.becameUnavailable(fatal) }
            thread.fail(Array(jobs[at...]), fatal)
            throw fatal
          }
          writesFailed(jobs[at].request, error)
          failAlone(jobs[at..<end], error)
        }
      }
      at = end
      if ContinuousClock.now - postedAt > Self.longestBatch { flush() }
    }
    flush()
  }

  private func flush() {
    thread.post(completions)
    completions.removeAll(keepingCapacity: true)
    postedAt = .now
  }

  // MARK: What fails

  /// Why a job isn't even tried.
  private func refusal(of job: Job) -> RegistryError? {
    if case .change = job.request, job.changeEra < thread.changeEra.load(ordering: .relaxed) {
      return writes[WriteKind.devices.rawValue].fault ?? .unavailable(.down, "the change has been given back")
    }
    guard let kind = job.request.writes else { return nil }
    let writes = writes[kind.rawValue]
    return ContinuousClock.now < writes.resume ? writes.fault : nil
  }

  /// The error for which the store is given up; nil where a look-up shows that it answers.
  private func judge(_ error: RegistryError, _ request: RegistryRequest) -> RegistryError? {
    switch error {
    case .unavailable(.locked, _), .unavailable(.slow, _):
      if request.writes == nil { timeouts += 1 }
      guard timeouts < Self.mostTimeouts else { return error }
      do throws(RegistryError) { try store.probe(isWriting: false) } catch { return error }
      return nil
    case .unavailable, .unusable, .refused, .fenced: return error
    }
  }

  private func failAlone(_ jobs: ArraySlice<Job>, _ error: RegistryError) {
    if let job = jobs.first, case .change = job.request, job.changeEra == thread.changeEra.load(ordering: .relaxed) {
      // Those behind it, submitted before the loop knows of it, would overtake it.
      flush()
      let era = thread.changeEra.add(1, ordering: .relaxed).newValue
      thread.post { $0.changesFailed(era) }
    }
    for job in jobs { completions.append(Completion(tag: job.tag, result: .failure(error))) }
  }

  private func writesFailed(_ request: RegistryRequest, _ error: RegistryError) {
    guard let kind = request.writes else { return }
    let place = kind.rawValue
    if writes[place].fault == nil { thread.post { $0.writesChanged(kind, fault: error) } }
    writes[place].fault = error
    writes[place].resume = ContinuousClock.now + .seconds(writes[place].pause.next())
  }

  private func worked(_ job: Job, hasWritten: Bool) {
    timeouts = 0
    guard hasWritten, let kind = job.request.writes, writes[kind.rawValue].fault != nil else { return }
    writes[kind.rawValue].fault = nil
    writes[kind.rawValue].pause.reset()
    thread.post { $0.writesChanged(kind, fault: nil) }
  }

  // MARK: What works

  /// - Returns: false where nothing had to be written, which tells nothing of writes.
  private func answerRun(_ jobs: ArraySlice<Job>) throws(RegistryError) -> Bool {
    guard let job = jobs.first else { return false }
    if jobs.count > 1, case .change = job.request {
      try applyTogether(jobs)
      return true
    }
    if case .probe = job.request, writes[WriteKind.devices.rawValue].fault != nil { try store.probe(isWriting: true) }
    do throws(RegistryError) {
      if case .note = job.request { return try noteTogether(jobs) }
      completions.append(Completion(tag: job.tag, result: .success(try job.request.answer(store, now: job.now))))
    } catch {
      guard case .refused = error, jobs.count == 1 else { throw error }
      completions.append(Completion(tag: job.tag, result: .failure(error)))
    }
    return true
  }

  /// Changes that follow each other share a transaction, and with it the wait for the disk. A value that the database refuses costs only
  /// its own change, and is an answer.
  private func applyTogether(_ jobs: ArraySlice<Job>) throws(RegistryError) {
    var changes: [RegistryChange] = []
    var fence: Int64?
    for job in jobs {
      guard case .change(let change, let claimed) = job.request else { continue }
      changes.append(change)
      fence = claimed
    }
    let answers = try store.apply(changes, fence: fence, now: jobs.first?.now ?? 0)
    for (job, answer) in zip(jobs, answers) { completions.append(Completion(tag: job.tag, result: .success(answer))) }
  }

  private func noteTogether(_ jobs: ArraySlice<Job>) throws(RegistryError) -> Bool {
    var notes: [(note: Note, now: Int64)] = []
    for job in jobs {
      if case .note(let note) = job.request { notes.append((note, job.now)) }
    }
    let (answers, hasWritten) = try store.note(notes)
    for (job, answer) in zip(jobs, answers) {
      completions.append(Completion(tag: job.tag, result: .success(answer.value)))
    }
    return hasWritten
  }

  private static func endOfRun(_ jobs: ArraySlice<Job>, from start: Int) -> Int {
    var end = start + 1
    if case .note(let note) = jobs[start].request {
      var weight = note.weight
      while end < jobs.endIndex, case .note(let next) = jobs[end].request, weight + next.weight <= Note.mostTogether {
        weight += next.weight
        end += 1
      }
      return end
    }
    guard case .change(_, let fence) = jobs[start].request else { return end }
    while end < jobs.endIndex, case .change(_, fence) = jobs[end].request, jobs[end].changeEra == jobs[start].changeEra {
      end += 1
    }
    return end
  }
}
