import CSQLite

/// Random numbers of the kernel, fetched many at a time: one call for each would cost as much as storing a device.
struct RandomNumbers {
  private var numbers: [Int64] = []

  mutating func next() -> Int64 {
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
