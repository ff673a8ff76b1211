import Glibc
import Wire

/// A mutex with one condition, for state that several threads share. A wait may end early: the caller tests its state again.
package final class Monitor: Sendable {
  // Allocated, because both need a fixed address.
  private nonisolated(unsafe) let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private nonisolated(unsafe) let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

  package init() {
    pthread_mutex_init(mutex, nil)
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    pthread_cond_init(changed, &attributes)
    pthread_condattr_destroy(&attributes)
  }

  deinit {
    pthread_cond_destroy(changed)
    changed.deallocate()
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }

  package func locked<Result>(_ body: () -> Result) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return body()
  }

  package func wakeAll() { pthread_cond_broadcast(changed) }

  /// Only inside of `locked`.
  package func wait() { pthread_cond_wait(changed, mutex) }

  /// Only inside of `locked`. False if the time has come.
  package func wait(until end: MonotonicTime) -> Bool {
    let nanoseconds = Int(end.nanoseconds)
    var end = timespec(tv_sec: nanoseconds / 1_000_000_000, tv_nsec: nanoseconds % 1_000_000_000)
    return pthread_cond_timedwait(changed, mutex, &end) != ETIMEDOUT
  }
}
