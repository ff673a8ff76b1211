import Logging
import PushCore
import Reactor
import Wire

/// Notified when the registry becomes changeable or not.
package protocol RegistryWatcher: AnyObject {
  func registryChanged(isUsable: Bool)
}

/// A shard's calls to the registry. Answers come in later turns, in the order of the calls; the loop never waits.
package final class RegistryClient: RegistryHandler {
  package weak var changes: (any RegistryWatcher)?
  package weak var acknowledgements: (any RegistryWatcher)?
  private let time: Turn
  private let log: Log
  private var registry: (any RegistryDoor)?
  /// `isUp`: the registry answers. `isWritable`: it also accepts writes of every kind.
  package private(set) var isUp = false
  package var isWritable: Bool { isUp && unwritable.isEmpty }
  private var unwritable: Set<WriteKind> = []
  private var calls = Slab<(Result<any Sendable, RegistryError>) -> Void>()
  private var nextProbe = MonotonicTime(nanoseconds: 0)
  private var nextPurge = MonotonicTime(nanoseconds: 0)
  private var nextPurgeOfNotes = MonotonicTime(nanoseconds: 0)
  private var nextPurgeOfContent = MonotonicTime(nanoseconds: 0)

  /// - Throws: if the system lacks resources.
  package init(_ location: RegistryLocation, limits: RegistryLimits, host: any RegistryHost, log: Log) throws(SystemError) {
    time = host.time
    self.log = log
    registry = try host.openRegistry(location, limits, self)
  }

  package var isIdle: Bool { (registry?.waiting ?? 0) == 0 }

  /// - Parameter then: called once; at once if the registry refuses at once. An error means that the registry can't answer now,
  ///   or refuses a value permanently. The call then had no effect, or an effect that is safe to repeat.
  package func call<Answer>(_ call: RegistryCall<Answer>, then: @escaping (Result<Answer, RegistryError>) -> Void) {
    let tag = calls.insert { result in
      switch result {
      case .success(let answer as Answer): then(.success(answer))
      case .success: then(.failure(.unavailable(.down, "an unexpected answer")))
      case .failure(let error): then(.failure(error))
      }
    }
    do throws(RegistryError) {
      guard let registry else { throw .unavailable(.down, "closed") }
      try registry.submit(call.request, tag: tag)
    } catch {
      calls.remove(tag)?(.failure(error))
    }
  }

  /// Makes a call and ignores its answer.
  package func note<Answer>(_ call: RegistryCall<Answer>) { self.call(call) { _ in } }

  package func withdrawChanges() { registry?.withdrawChanges() }

  /// Earlier calls are still processed, but no answer is reported any more.
  package func close() {
    registry?.close()
    registry = nil
  }

  package func registryAnswered(_ tag: Int, _ answer: any Sendable) { calls.remove(tag)?(.success(answer)) }
  package func registryFailed(_ tag: Int, _ error: RegistryError) { calls.remove(tag)?(.failure(error)) }

  package func registryAvailable() {
    isUp = true
    // A reopened store reports its own faults only.
    unwritable = []
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

  // MARK: Maintenance. Any worker may do it.

  /// Milliseconds for which a gone device answers `NotRegistered`, and for which an ended campaign is listed.
  private static let goneKept: Int64 = 90 * 86_400_000
  private static let campaignsKept: Int64 = 30 * 86_400_000
  /// Milliseconds. Longer than an activity lives after its token was registered: Apple ends it after twelve hours.
  private static let activitiesKept: Int64 = 7 * 86_400_000
  /// Milliseconds: two years.
  private static let auditKept: Int64 = 730 * 86_400_000
  private static let purgePause = 600.0
  private static let purgedAtOnce = 500
  /// Milliseconds for which notes of a message on a device are kept: longer than any message lives.
  private static let notesKept: Int64 = 30 * 86_400_000
  private static let notesPurgedAtOnce = 4_000
  private static let contentPurgedAtOnce = 200

  /// Seconds. An idle shard must notice an outage too; otherwise it would accept changes that another shard has returned.
  private static let probePause = 10.0

  /// Not due at the start, and at different times in workers that start together.
  private func isDue(_ next: inout MonotonicTime) -> Bool {
    guard time.now >= next else { return false }
    let isFirst = next.nanoseconds == 0
    next = time.now.advanced(bySeconds: Self.purgePause * Double.random(in: 0.5...1.5, using: &time.random))
    return !isFirst
  }

  private func purgeNotes(
    _ next: ReferenceWritableKeyPath<RegistryClient, MonotonicTime>, atOnce limit: Int,
    _ purge: @escaping @Sendable (DeviceStore, _ now: Int64, _ limit: Int) throws -> Int
  ) {
    guard isDue(&self[keyPath: next]) else { return }
    call(.write(.notes) { try purge($0, $1, limit) }) { [weak self] result in
      if let self, case .success(limit...) = result { self[keyPath: next] = time.now }
    }
  }

  /// Call this about once a second. Purges run every ten minutes; those of notes and content run every second while more are
  /// due.
  package func lookAfter() {
    if time.now >= nextProbe {
      nextProbe = time.now.advanced(bySeconds: Self.probePause)
      note(.probe)
    }
    purgeNotes(\.nextPurgeOfNotes, atOnce: Self.notesPurgedAtOnce) { store, now, limit in
      try store.purge(.notes, before: now - Self.notesKept, limit: limit) + store.purge(.waiting, before: now, limit: limit)
        + store.purge(.requests, before: now, limit: limit)
    }
    purgeNotes(\.nextPurgeOfContent, atOnce: Self.contentPurgedAtOnce) { store, now, limit in
      try store.purge(.content, before: now, limit: limit)
    }
    guard isDue(&nextPurge) else { return }
    let now = time.wallClock
    let kept: [(Purge, Int64)] = [
      (.secrets, Self.goneKept), (.activities, Self.activitiesKept), (.devices, Self.goneKept),
      (.campaigns, Self.campaignsKept), (.audit, Self.auditKept),
    ]
    for (records, time) in kept {
      note(.write(.devices) { store, _ in try store.purge(records, before: now - time, limit: Self.purgedAtOnce) })
    }
  }
}
