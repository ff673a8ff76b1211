/// Limits of the trace, which keeps the outcomes of finished requests.
public struct TraceSettings: Sendable, Equatable {
  /// Seconds for which the broker keeps an entry.
  public var keep: Int64
  public var megabytes: Int
  /// Maximum requests that a shard records per second.
  public var perSecond: Int

  public init(keep: Int64, megabytes: Int, perSecond: Int) {
    self.keep = keep
    self.megabytes = megabytes
    self.perSecond = perSecond
  }
}
