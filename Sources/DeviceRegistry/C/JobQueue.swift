import Glibc

/// A queue from one thread to another, which may sleep while it waits.
final class JobQueue<Job: Sendable>: @unchecked Sendable {
  // The condition variable needs a fixed address. All state below is accessed with the mutex held.
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let changed: UnsafeMutablePointer<pthread_cond_t>
  private var jobs: [Job] = []
  private var isClosed = false

  init() {
    mutex = .allocate(capacity: 1)
    pthread_mutex_init(mutex, nil)
    changed = .allocate(capacity: 1)
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    pthread_cond_init(changed, &attributes)
    pthread_condattr_destroy(&attributes)
  }

  deinit {
    pthread_cond_destroy(changed)
    pthread_mutex_destroy(mutex)
    changed.deallocate()
    mutex.deallocate()
  }

  func append(_ more: [Job]) {
    locked {
      if jobs.isEmpty { pthread_cond_signal(changed) }
      jobs += more
    }
  }

  /// Closes the queue. `take` still returns the remaining jobs, then nil.
  func close() {
    locked {
      isClosed = true
      pthread_cond_signal(changed)
    }
  }

  /// Waits for jobs and takes the first ones. Returns nil once the queue is closed and empty.
  func take(_ limit: Int) -> [Job]? {
    locked {
      while jobs.isEmpty, !isClosed { pthread_cond_wait(changed, mutex) }
      guard !jobs.isEmpty else { return nil }
      if jobs.count <= limit {
        defer { jobs = [] }
        return jobs
      }
      let taken = Array(jobs.prefix(limit))
      jobs.removeFirst(taken.count)
      return taken
    }
  }

  func takeAll() -> [Job] {
    locked {
      defer { jobs = [] }
      return jobs
    }
  }

  /// Sleeps even if jobs arrive. Returns false, at once, if the queue is closed.
  func sleep(seconds: Double) -> Bool {
    var deadline = timespec()
    clock_gettime(CLOCK_MONOTONIC, &deadline)
    let nanoseconds = deadline.tv_nsec + Int(seconds.truncatingRemainder(dividingBy: 1) * 1e9)
    deadline.tv_sec += Int(seconds) + nanoseconds / 1_000_000_000
    deadline.tv_nsec = nanoseconds % 1_000_000_000
    return locked {
      while !isClosed {
        if pthread_cond_timedwait(changed, mutex, &deadline) == ETIMEDOUT { return !isClosed }
      }
      return false
    }
  }

  private func locked<Result>(_ body: () -> Result) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return body()
  }
}
