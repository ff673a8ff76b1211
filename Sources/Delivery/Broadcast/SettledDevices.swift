import DeviceRegistry

/// The devices of a page that have ended, and how: what a worker leaves to whoever gets the page next.
///
/// Devices, not counts: a page may be in the hands of two workers for a while, one of which stood still, and be on the ladder as well.
/// What one of them has sent to is then not what the other one's ticket has left out.
struct SettledDevices: Equatable {
  /// Whether it was reached, by the device's number.
  private(set) var isReached: [Int64: Bool] = [:]

  var sent: Int { isReached.values.count { $0 } }
  var failed: Int { isReached.count - sent }

  func contains(_ device: Int64) -> Bool { isReached[device] != nil }

  /// A device that was reached once was reached.
  mutating func note(_ device: Int64, isReached reached: Bool) { isReached[device] = reached || isReached[device] == true }

  mutating func keep(only devices: Set<Int64>) { isReached = isReached.filter { devices.contains($0.key) } }
}

/// As the registry keeps it: eight bytes for each number, inverted where the device was not reached.
extension SettledDevices {
  /// A record that counts other devices than it names is an earlier build's: nobody can say which of them have failed, and all are sent to
  /// again.
  init(_ record: PageRecord?) {
    guard let record else { return }
    for start in stride(from: 0, to: record.settled.count - 7, by: 8) {
      let number = record.settled[start..<start + 8].reduce(Int64(0)) { $0 << 8 | Int64($1) }
      note(number < 0 ? ~number : number, isReached: number >= 0)
    }
    if record.sent != sent || record.failed != failed { self = SettledDevices() }
  }

  var record: PageRecord {
    var bytes: [UInt8] = []
    for (device, isReached) in isReached.sorted(by: { $0.key < $1.key }) { bytes.append(number: isReached ? device : ~device) }
    return PageRecord(sent: Int64(sent), failed: Int64(failed), settled: bytes)
  }
}
