import Wire

/// Processes a store thread's jobs while the store answers. A statement that times out, or waits too long for a lock, fails
/// only its own job; look-ups continue. Writes of the same kind would wait for the same lock, so they fail at once for a
/// growing time. An error that shows that the store no longer answers is thrown.
final class StoreWork {
  typealias Job = StoreThread.Job
  typealias Completion = StoreThread.Completion

  private let store: DeviceStore
  private unowned let thread: StoreThread
  private var completions: [Completion] = []
  private var postedAt = ContinuousClock.now

  private var writes: [Writes]
  /// Successive look-ups that timed out.
  private var timeouts = 0

  private struct Writes {
    var fault: RegistryError?
    var resume = ContinuousClock.now
    var pause: Backoff
  }

  private static let mostTimeouts = 3
  /// After this time, finished answers are delivered before the next job, so that callers can continue.
  private static let longestBatch = Duration.milliseconds(3)

  init(_ store: DeviceStore, thread: StoreThread, pause: Backoff) {
    self.store = store
    self.thread = thread
    writes = WriteKind.allCases.map { _ in Writes(pause: pause) }
  }

  /// Processes jobs in order.
  /// - Throws: if the store is no longer usable. All jobs have been answered or have failed even then.
  func answer(_ jobs: ArraySlice<Job>) throws(RegistryError) {
    var at = jobs.startIndex
    // Jobs before this index are processed one by one.
    var alone = at
    while at < jobs.endIndex {
      let end = at < alone ? at + 1 : Self.endOfRun(jobs, from: at)
      if let refusal = refusal(of: jobs[at]) {
        failAlone(jobs[at..<end], refusal)
      } else {
        do throws(RegistryError) {
          worked(jobs[at], hasWritten: try answerRun(jobs[at..<end]))
        } catch .refused where end - at > 1 {
          // The database refused a value of one job and rolled back the others.
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

  // MARK: Failures

  /// Why a job fails without being tried; nil if it should be tried.
  private func refusal(of job: Job) -> RegistryError? {
    if case .change = job.request, job.changeEra < thread.changeEra.load(ordering: .relaxed) {
      return writes[WriteKind.devices.rawValue].fault ?? .unavailable(.down, "the change has been given back")
    }
    guard let kind = job.request.writes else { return nil }
    let writes = writes[kind.rawValue]
    return ContinuousClock.now < writes.resume ? writes.fault : nil
  }

  /// The error for which the store must be given up; nil if a look-up shows that it answers.
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
      // Later changes that were submitted before the loop knows of this failure would overtake it.
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

  // MARK: Successes

  /// Successive changes and notes share a transaction, which waits for the disk only once. A refused change fails alone.
  /// - Returns: false if nothing had to be written. That says nothing about writes.
  private func answerRun(_ jobs: ArraySlice<Job>) throws(RegistryError) -> Bool {
    guard let job = jobs.first else { return false }
    var hasWritten = true
    if case .probe = job.request, writes[WriteKind.devices.rawValue].fault != nil { try store.probe(isWriting: true) }
    do throws(RegistryError) {
      let answers: [any Sendable]
      switch job.request {
      case .change(_, let fence):
        let changes = jobs.compactMap { if case .change(let change, _) = $0.request { change } else { nil } }
        answers = try store.apply(changes, fence: fence, now: job.now)
      case .note:
        let notes = jobs.compactMap { job -> (note: Note, now: Int64)? in
          if case .note(let note) = job.request { (note, job.now) } else { nil }
        }
        let noted = try store.note(notes)
        answers = noted.answers.map(\.value)
        hasWritten = noted.hasWritten
      case .probe, .call: answers = [try job.request.answer(store, now: job.now)]
      }
      for (job, answer) in zip(jobs, answers) { completions.append(Completion(tag: job.tag, result: .success(answer))) }
    } catch {
      guard case .refused = error, jobs.count == 1 else { throw error }
      completions.append(Completion(tag: job.tag, result: .failure(error)))
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
