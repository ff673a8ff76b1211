import Foundation
import Testing

/// A suite whose tests wait for processes. They run on separate threads, so that they neither hold up computing tests nor each
/// other.
struct BlockingTests: SuiteTrait, TestTrait, TestScoping {
  let isRecursive = true

  func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    // A suite's own scope only starts its tests.
    guard testCase != nil else { return try await function() }
    let isEarly = test.traits.contains { $0 is EarlyTests }
    try await withTaskExecutorPreference(isEarly ? BlockingThreads.early : BlockingThreads.others) { try await function() }
  }
}

/// Blocking tests that start before others that wait, because they take long, or because their suite's tests run one after the
/// other.
struct EarlyTests: SuiteTrait, TestTrait {
  let isRecursive = true
}

extension Trait where Self == BlockingTests {
  static var blocking: Self { BlockingTests() }
}

extension Trait where Self == EarlyTests {
  static var early: Self { EarlyTests() }
}

/// Runs jobs on the threads of blocking tests.
private final class BlockingThreads: TaskExecutor {
  static let early = BlockingThreads(isEarly: true)
  static let others = BlockingThreads(isEarly: false)

  private let isEarly: Bool

  private init(isEarly: Bool) { self.isEarly = isEarly }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    Line.shared.append(isEarly: isEarly) { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}

/// What waits for a thread, and the threads: as many as tests may wait at once.
private final class Line: @unchecked Sendable {
  static let shared = Line(threads: 8)

  typealias Job = @Sendable () -> Void

  // Accessed with the condition's lock.
  private let condition = NSCondition()
  private var early: ArraySlice<Job> = []
  private var others: ArraySlice<Job> = []

  init(threads: Int) {
    for _ in 0..<threads {
      Thread.detachNewThread { [self] in
        while true { next()() }
      }
    }
  }

  func append(isEarly: Bool, _ job: @escaping Job) {
    condition.withLock {
      if isEarly { early.append(job) } else { others.append(job) }
      condition.signal()
    }
  }

  private func next() -> Job {
    condition.withLock {
      while true {
        if let job = early.popFirst() ?? others.popFirst() { return job }
        condition.wait()
      }
    }
  }
}
