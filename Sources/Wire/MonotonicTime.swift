/// A point on the monotonic clock, in nanoseconds. Machines get the time as an argument and never read a clock.
public struct MonotonicTime: Comparable, Hashable, Sendable {
  public var nanoseconds: Int64

  @inlinable public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  public static let distantFuture = MonotonicTime(nanoseconds: .max)

  @inlinable public static func < (a: MonotonicTime, b: MonotonicTime) -> Bool { a.nanoseconds < b.nanoseconds }

  /// Saturates at `distantFuture`.
  @inlinable public func advanced(bySeconds seconds: Double) -> MonotonicTime {
    let delta = seconds * 1e9
    guard delta < 9e18 else { return .distantFuture }
    let (sum, overflow) = nanoseconds.addingReportingOverflow(Int64(delta))
    return overflow ? .distantFuture : MonotonicTime(nanoseconds: sum)
  }

  /// Negative if `self` is before `earlier`.
  @inlinable public func seconds(since earlier: MonotonicTime) -> Double {
    Double(nanoseconds &- earlier.nanoseconds) / 1e9
  }
}
