/// Random numbers: from the system, or reproducible from a seed (SplitMix64) for simulations.
public struct RandomSource: RandomNumberGenerator, Sendable {
  /// Nil for the system's numbers.
  private var state: UInt64?

  public init() {}

  public init(seed: UInt64) { state = seed }

  public mutating func next() -> UInt64 {
    guard var state else {
      var system = SystemRandomNumberGenerator()
      return system.next()
    }
    state &+= 0x9E37_79B9_7F4A_7C15
    self.state = state
    var mixed = state
    mixed = (mixed ^ mixed &>> 30) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ mixed &>> 27) &* 0x94D0_49BB_1331_11EB
    return mixed ^ mixed &>> 31
  }
}
