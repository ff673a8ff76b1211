import Dispatch
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
    try await withTaskExecutorPreference(BlockingThreads.shared) { try await function() }
  }
}

extension Trait where Self == BlockingTests {
  static var blocking: Self { BlockingTests() }
}

/// Threads for as many tests as may wait at once.
private final class BlockingThreads: TaskExecutor {
  static let shared = BlockingThreads(count: 4)

  private let queue = DispatchQueue(label: "blocking tests", attributes: .concurrent)
  private let free: DispatchSemaphore
  private let entrance = DispatchQueue(label: "blocking tests' entrance")

  init(count: Int) { free = DispatchSemaphore(value: count) }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    entrance.async { [self] in
      free.wait()
      queue.async { [self] in
        job.runSynchronously(on: asUnownedTaskExecutor())
        free.signal()
      }
    }
  }
}
