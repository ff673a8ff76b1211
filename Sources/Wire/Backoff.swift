/// Exponential backoff with jitter: attempt `n` waits between half and all of `base · 2ⁿ`, capped.
public struct Backoff: Sendable {
  public let base: Double
  public let cap: Double
  public private(set) var attempts = 0

  /// In seconds.
  public init(base: Double, cap: Double) {
    self.base = base
    self.cap = cap
  }

  public mutating func next() -> Double {
    var generator = SystemRandomNumberGenerator()
    return next(using: &generator)
  }

  public mutating func next(using generator: inout some RandomNumberGenerator) -> Double {
    let ceiling = min(cap, base * Double(UInt64(1) << UInt64(min(attempts, 32))))
    attempts += 1
    return Double.random(in: ceiling / 2...ceiling, using: &generator)
  }

  /// Call after a successful attempt.
  public mutating func reset() { attempts = 0 }
}
