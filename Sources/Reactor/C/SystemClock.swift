import Glibc
import Wire

/// The kernel's clocks; a loop reads them once in each turn.
public enum SystemClock {
  public static var monotonic: MonotonicTime { MonotonicTime(nanoseconds: nanoseconds(CLOCK_MONOTONIC)) }
  public static var unixMilliseconds: Int64 { nanoseconds(CLOCK_REALTIME) / 1_000_000 }

  static func nanoseconds(_ clock: Int32) -> Int64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
