/// Exponential back-off with full jitter above a floor: attempt `n` waits between half and all of `base · 2ⁿ`, capped.
public struct Backoff: Sendable {
  public let base: Double
  public let cap: Double
  public private(set) var attempts = 0

  /// Both in seconds.
  public init(base: Double, cap: Double) {
    self.base = base
    self.cap = cap
  }

  /// Seconds to wait before the next attempt.
  public mutating func next() -> Double {
    var generator = SystemRandomNumberGenerator()
    return next(using: &generator)
  }

  public mutating func next(using generator: inout some RandomNumberGenerator) -> Double {
    let ceiling = min(cap, base * Double(UInt64(1) << UInt64(min(attempts, 32))))
    attempts += 1
    return Double.random(in: ceiling / 2...ceiling, using: &generator)
  }

  /// To be called once an attempt has held.
  public mutating func reset() { attempts = 0 }
}
