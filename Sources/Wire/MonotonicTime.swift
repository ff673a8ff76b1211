/// A point on the monotonic clock, in nanoseconds. Machines never read a clock: time is an argument, so tests own it.
public struct MonotonicTime: Comparable, Hashable, Sendable {
  public var nanoseconds: Int64

  @inlinable public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  /// Later than every deadline.
  public static let distantFuture = MonotonicTime(nanoseconds: .max)

  @inlinable public static func < (a: MonotonicTime, b: MonotonicTime) -> Bool { a.nanoseconds < b.nanoseconds }

  /// Saturates at `distantFuture`.
  @inlinable public func advanced(bySeconds seconds: Double) -> MonotonicTime {
    let delta = seconds * 1e9
    guard delta < 9e18 else { return .distantFuture }
    let (sum, overflow) = nanoseconds.addingReportingOverflow(Int64(delta))
    return overflow ? .distantFuture : MonotonicTime(nanoseconds: sum)
  }

  /// Seconds from `earlier` to `self`; negative when `self` is before it.
  @inlinable public func seconds(since earlier: MonotonicTime) -> Double {
    Double(nanoseconds &- earlier.nanoseconds) / 1e9
  }
}
