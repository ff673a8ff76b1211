/// What is kept of requests that have ended, so that it can be asked what became of one.
public struct TraceSettings: Sendable, Equatable {
  /// Seconds.
  public var keep: Int64
  /// What the broker keeps at most.
  public var megabytes: Int
  /// Requests that a shard notes in a second.
  public var perSecond: Int

  public init(keep: Int64, megabytes: Int, perSecond: Int) {
    self.keep = keep
    self.megabytes = megabytes
    self.perSecond = perSecond
  }
}
