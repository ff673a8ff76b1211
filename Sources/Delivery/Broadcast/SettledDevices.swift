import AMQP
import DeviceRegistry

/// The devices of a page that have ended, and how. A worker leaves this to the next worker that receives the page. It names
/// devices instead of counting them: two workers may have a page at the same time, and it may be on the ladder too. A ticket's
/// pending devices can then include some that another worker has sent to.
struct SettledDevices: Equatable {
  /// By device number: true if the push reached the device.
  private(set) var isReached: [Int64: Bool] = [:]

  var sent: Int { isReached.values.count { $0 } }
  var failed: Int { isReached.count - sent }

  func contains(_ device: Int64) -> Bool { isReached[device] != nil }

  mutating func note(_ device: Int64, isReached reached: Bool) { isReached[device] = reached || isReached[device] == true }

  mutating func keep(only devices: Set<Int64>) { isReached = isReached.filter { devices.contains($0.key) } }
}

/// The registry's form: eight bytes for each number, with all bits inverted if the device was not reached.
extension SettledDevices {
  /// Empty if the record's counts don't match its devices: an earlier build wrote it, and all devices are sent to again.
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
    for (device, isReached) in isReached.sorted(by: { $0.key < $1.key }) { bytes.appendBigEndian(isReached ? device : ~device) }
    return PageRecord(sent: Int64(sent), failed: Int64(failed), settled: bytes)
  }
}
