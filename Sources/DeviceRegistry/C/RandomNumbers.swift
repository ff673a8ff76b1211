import CSQLite
import Wire

/// Random numbers of the kernel, fetched many at a time: one call for each would cost as much as storing a device. Or those of a seed.
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
    // At most 256 bytes are never cut short (getrandom(2)).
    numbers = [Int64](repeating: 0, count: 32)
    let count = numbers.withUnsafeMutableBytes { getrandom($0.baseAddress!, $0.count, 0) }
    precondition(count == 256, "the kernel has no random numbers")
  }
}
