import CSQLite
import Wire

/// Random numbers from the kernel, or from a seed. Fetched in batches: one call each would cost as much as storing a device.
struct RandomNumbers {
  private var numbers: [Int64] = []
  private var seeded: RandomSource?

  init(seed: UInt64? = nil) { seeded = seed.map { RandomSource(seed: $0) } }

  mutating func next() -> Int64 {
    if let number = seeded?.next() { return Int64(bitPattern: number) }
    if numbers.isEmpty { refill() }
    return numbers.removeLast()
  }

  private mutating func refill() {
    // Requests of up to 256 bytes always return in full (getrandom(2)).
    numbers = [Int64](repeating: 0, count: 32)
    let count = numbers.withUnsafeMutableBytes { getrandom($0.baseAddress!, $0.count, 0) }
    precondition(count == 256, "the kernel has no random numbers")
  }
}
