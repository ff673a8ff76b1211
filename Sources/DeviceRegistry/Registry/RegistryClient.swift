import Logging
import PushCore
import Reactor
import Wire

/// Hears whether the registry can be changed.
package protocol RegistryWatcher: AnyObject {
  func registryChanged(isUsable: Bool)
}

/// A shard's calls to the registry, each with what its answer is for. Answers come in later turns, in the order of the calls; the loop
/// never waits.
package final class RegistryClient: RegistryHandler {
  /// Waits for the registry to be usable.
  package weak var changes: (any RegistryWatcher)?
  package weak var acknowledgements: (any RegistryWatcher)?
  private let time: Turn
  private let log: Log
  private var registry: (any RegistryDoor)?
  /// It answers; and takes writes of every kind.
  package private(set) var isUp = false
  package var isWritable: Bool { isUp && unwritable.isEmpty }
  private var unwritable: Set<WriteKind> = []
  private var calls = Slab<(Result<any Sendable, RegistryError>) -> Void>()
  private var nextProbe = MonotonicTime(nanoseconds: 0)
  private var nextPurge = MonotonicTime(nanoseconds: 0)
  private var nextPurgeOfNotes = MonotonicTime(nanoseconds: 0)
  private var nextPurgeOfContent = MonotonicTime(nanoseconds: 0)

  /// - Throws: when the system has too little left for it.
  package init(_ location: RegistryLocation, limits: RegistryLimits, host: any RegistryHost, log: Log) throws(SystemError) {
    time = host.time
    self.log = log
    registry = try host.openRegistry(location, limits, self)
  }

  /// Nothing waits for an answer.
  package var isIdle: Bool { (registry?.waiting ?? 0) == 0 }

  /// - Parameter then: called once, and at once where the registry refuses at once. An error means that the registry can't answer now, or
  ///   refuses a value for good; the call had no effect, or one that is safe to repeat.
  package func call<Answer>(_ call: RegistryCall<Answer>, then: @escaping (Result<Answer, RegistryError>) -> Void) {
    let tag = calls.insert { result in
      then(
        result.flatMap { answer in
          guard let answer = answer as? Answer else { return .failure(.unavailable(.down, "an answer that was not asked for")) }
          return .success(answer)
        })
    }
    do throws(RegistryError) {
      guard let registry else { throw .unavailable(.down, "closed") }
      try registry.submit(call.request, tag: tag)
    } catch {
      calls.remove(tag)?(.failure(error))
    }
  }

  /// For calls whose answer isn't needed.
  package func note<Answer>(_ call: RegistryCall<Answer>) { self.call(call) { _ in } }

  /// Changes that were submitted and aren't begun fail.
  package func withdrawChanges() { registry?.withdrawChanges() }

  /// What was called for before is still done; no answer is reported any more.
  package func close() {
    registry?.close()
    registry = nil
  }

  // MARK: RegistryHandler

  package func registryAnswered(_ tag: Int, _ answer: any Sendable) { calls.remove(tag)?(.success(answer)) }
  package func registryFailed(_ tag: Int, _ error: RegistryError) { calls.remove(tag)?(.failure(error)) }

  package func registryAvailable() {
    isUp = true
    log.info("the registry is in use")
    registryChanged(isUsable: true)
  }

  private func registryChanged(isUsable: Bool) {
    changes?.registryChanged(isUsable: isUsable)
    acknowledgements?.registryChanged(isUsable: isUsable)
  }

  package func registryUnavailable(_ error: RegistryError) {
    isUp = false
    registryChanged(isUsable: false)
    log.error("the registry can't be used; sends with provider tokens go on", ["reason": "\(error)"])
  }

  package func registryWritesChanged(_ kind: WriteKind, _ fault: RegistryError?) {
    let what = "\(kind)"
    if fault == nil { unwritable.remove(kind) } else { unwritable.insert(kind) }
    if let fault {
      log.error("the registry can't be written to; look-ups go on", ["what": what, "reason": "\(fault)"])
    } else {
      log.info("the registry can be written to again", ["what": what])
    }
    if kind == .devices { registryChanged(isUsable: fault == nil) }
  }
}

/// Upkeep of the registry, by whichever worker's turn it is.
extension RegistryClient {
  /// How long a device that is gone answers `NotRegistered`, and a campaign that is over is listed. Milliseconds.
  private static let goneKept: Int64 = 90 * 86_400_000
  private static let campaignsKept: Int64 = 30 * 86_400_000
  /// Longer than an activity lives after its token was registered: Apple ends it after twelve hours. Milliseconds.
  private static let activitiesKept: Int64 = 7 * 86_400_000
  /// Seconds.
  private static let purgePause = 600.0
  private static let purgedAtOnce = 500
  /// How long what was noted of a message on a device stands: longer than any message lives. Milliseconds.
  private static let notesKept: Int64 = 30 * 86_400_000
  private static let notesPurgedAtOnce = 4_000
  private static let contentPurgedAtOnce = 200

  /// A shard that calls for nothing is to know of an outage as well: or it would take the changes that another one has given back. Seconds.
  private static let probePause = 10.0

  /// Not at first, and not at the same time in workers that are started together.
  private func isDue(_ next: inout MonotonicTime) -> Bool {
    guard time.now >= next else { return false }
    let isFirst = next.nanoseconds == 0
    next = time.now.advanced(bySeconds: Self.purgePause * Double.random(in: 0.5...1.5, using: &time.random))
    return !isFirst
  }

  /// To be called about once a second; purges every ten minutes, notes and pages of content every second while there are more of them to go.
  package func lookAfter() {
    if time.now >= nextProbe {
      nextProbe = time.now.advanced(bySeconds: Self.probePause)
      note(.probe)
    }
    if isDue(&nextPurgeOfNotes) {
      let (before, limit) = (time.wallClock - Self.notesKept, Self.notesPurgedAtOnce)
      let purge = RegistryCall.write(.notes) {
        try $0.purgeNotes(before: before, limit: limit) + $0.purgeWaiting(before: $1, limit: limit)
          + $0.purgeRequests(before: $1, limit: limit)
      }
      call(purge) { [weak self] result in
        if let self, case .success(Self.notesPurgedAtOnce...) = result { nextPurgeOfNotes = time.now }
      }
    }
    if isDue(&nextPurgeOfContent) {
      let before = time.wallClock
      let purge = RegistryCall.write(.notes) { store, _ in
        try store.purgeContent(before: before, limit: Self.contentPurgedAtOnce)
      }
      call(purge) { [weak self] result in
        if let self, case .success(Self.contentPurgedAtOnce) = result { nextPurgeOfContent = time.now }
      }
    }
    guard isDue(&nextPurge) else { return }
    let (now, limit) = (time.wallClock, Self.purgedAtOnce)
    note(.write(.devices) { store, _ in try store.purgeSecrets(before: now - Self.goneKept, limit: limit) })
    note(
      .write(.devices) { store, _ in
        _ = try store.purgeActivities(before: now - Self.activitiesKept, limit: limit)
        _ = try store.purge(goneBefore: now - Self.goneKept, campaignsBefore: now - Self.campaignsKept, limit: limit)
      })
  }
}
