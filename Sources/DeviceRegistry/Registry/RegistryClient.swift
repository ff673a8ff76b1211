import Logging
import PushCore
import Reactor
import Wire

/// A shard's calls to the registry. Answers come in later turns, in the order of the calls; the loop never waits.
public final class RegistryClient: RegistryHandler {
  /// Called, in this order, when the registry becomes changeable or not.
  package var watchers: [(_ isUsable: Bool) -> Void] = []
  private let time: Turn
  private let log: Log
  private var registry: (any RegistryDoor)?
  /// `isUp`: the registry answers. `isWritable`: it also accepts writes of every kind.
  package private(set) var isUp = false
  package var isWritable: Bool { isUp && unwritable.isEmpty }
  private var unwritable: Set<WriteKind> = []
  private var calls = Slab<(Result<any Sendable, RegistryError>) -> Void>()
  private var nextProbe = MonotonicTime(nanoseconds: 0)

  /// - Throws: if the system lacks resources.
  package init(_ location: RegistryLocation, limits: RegistryLimits, host: any RegistryHost, log: Log) throws(SystemError) {
    time = host.time
    self.log = log
    registry = try host.openRegistry(location, limits, self)
  }

  package var isIdle: Bool { (registry?.waiting ?? 0) == 0 }

  /// - Parameter then: called once; at once if the registry refuses at once. An error means that the registry can't answer now,
  ///   or refuses a value permanently. The call then had no effect, or an effect that is safe to repeat.
  @inlinable
  public func call<Answer>(_ call: RegistryCall<Answer>, then: @escaping (Result<Answer, RegistryError>) -> Void) {
    submit(call.request) { result in
      switch result {
      case .success(let answer as Answer): then(.success(answer))
      case .success: then(.failure(.unavailable(.down, "an unexpected answer")))
      case .failure(let error): then(.failure(error))
      }
    }
  }

  @usableFromInline
  func submit(_ request: RegistryRequest, then: @escaping (Result<any Sendable, RegistryError>) -> Void) {
    let tag = calls.insert(then)
    do throws(RegistryError) {
      guard let registry else { throw .unavailable(.down, "closed") }
      try registry.submit(request, tag: tag)
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

  public func registryAnswered(_ tag: Int, _ result: Result<any Sendable, RegistryError>) { calls.remove(tag)?(result) }

  public func registryChanged(_ error: RegistryError?) {
    isUp = error == nil
    guard let error else {
      // A reopened store reports its own faults only.
      unwritable = []
      log.info("the registry is in use")
      return tellWatchers(isUsable: true)
    }
    tellWatchers(isUsable: false)
    log.error("the registry can't be used; sends with provider tokens go on", ["reason": "\(error)"])
  }

  private func tellWatchers(isUsable: Bool) {
    for watcher in watchers { watcher(isUsable) }
  }

  public func registryWritesChanged(_ kind: WriteKind, _ fault: RegistryError?) {
    if let fault {
      unwritable.insert(kind)
      log.error("the registry can't be written to; look-ups go on", ["what": "\(kind)", "reason": "\(fault)"])
    } else {
      unwritable.remove(kind)
      log.info("the registry can be written to again", ["what": "\(kind)"])
    }
    if kind == .devices { tellWatchers(isUsable: fault == nil) }
  }

  // MARK: Maintenance. Any worker may do it.

  /// Records that are purged at the same time.
  private struct Upkeep {
    let kind: WriteKind
    /// The limit of each purge.
    let limit: Int
    /// The purges of each call, with the days for which the records are kept.
    let calls: [[(records: Purge, days: Int64)]]
    /// True if a call that reaches the limit is repeated a second later.
    var goesOn = false
    var next = MonotonicTime(nanoseconds: 0)
  }

  private var upkeep = [
    // Notes of a message on a device are kept longer than any message lives.
    Upkeep(kind: .notes, limit: 4_000, calls: [[(.notes, 30), (.waiting, 0), (.requests, 0)]], goesOn: true),
    Upkeep(kind: .notes, limit: 200, calls: [[(.content, 0)]], goesOn: true),
    // A gone device answers `NotRegistered` for 90 days, and an ended campaign is listed for 30. An activity's token is kept
    // longer than an activity lives: Apple ends it after twelve hours.
    Upkeep(
      kind: .devices, limit: 500,
      calls: [[(.secrets, 90)], [(.activities, 7)], [(.devices, 90)], [(.campaigns, 30)], [(.audit, 730)]]),
  ]
  /// Seconds between two purges of the same records, on average.
  private static let purgePause = 600.0
  /// Seconds. An idle shard must notice an outage too; otherwise it would accept changes that another shard has returned.
  private static let probePause = 10.0

  /// Call this about once a second. Purges run every ten minutes, not at the start, and at different times in workers that start
  /// together.
  package func lookAfter() {
    if time.now >= nextProbe {
      nextProbe = time.now.advanced(bySeconds: Self.probePause)
      note(.probe)
    }
    for (index, part) in upkeep.enumerated() where time.now >= part.next {
      let pause = Self.purgePause * Double.random(in: 0.5...1.5, using: &time.random)
      upkeep[index].next = time.now.advanced(bySeconds: pause)
      guard part.next.nanoseconds != 0 else { continue }
      for purges in part.calls {
        let purge = RegistryCall.write(part.kind) { store, now in
          try purges.reduce(0) { try $0 + store.purge($1.records, before: now - $1.days * 86_400_000, limit: part.limit) }
        }
        call(purge) { [weak self] result in
          if let self, part.goesOn, case .success(part.limit...) = result { upkeep[index].next = time.now }
        }
      }
    }
  }
}
