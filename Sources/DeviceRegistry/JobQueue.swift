import Reactor

/// A queue from one thread to another, which may sleep while it waits.
final class JobQueue<Job: Sendable>: @unchecked Sendable {
  /// Protects all below.
  private let monitor = Monitor()
  private var jobs: [Job] = []
  private var isClosed = false

  func append(_ more: [Job]) {
    monitor.locked {
      if jobs.isEmpty { monitor.wakeAll() }
      jobs += more
    }
  }

  /// Closes the queue. `take` still returns the remaining jobs, then nil.
  func close() {
    monitor.locked {
      isClosed = true
      monitor.wakeAll()
    }
  }

  /// Waits for jobs and takes the first ones. Returns nil once the queue is closed and empty.
  func take(_ limit: Int) -> [Job]? {
    monitor.locked {
      while jobs.isEmpty, !isClosed { monitor.wait() }
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
    monitor.locked {
      defer { jobs = [] }
      return jobs
    }
  }

  /// Sleeps even if jobs arrive. Returns false, at once, if the queue is closed.
  func sleep(seconds: Double) -> Bool {
    let end = SystemClock.monotonic.advanced(bySeconds: seconds)
    return monitor.locked {
      while !isClosed {
        if !monitor.wait(until: end) { return !isClosed }
      }
      return false
    }
  }
}
