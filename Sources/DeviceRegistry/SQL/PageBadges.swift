import Wire

/// The badges that a campaign's message has on a page's devices. They are stored with the page, because a note for each device costs
/// more. Devices that share a counter may be on several pages, so they have notes.
struct PageBadges {
  let page: BadgeCount.Page
  /// For each device its number and its badge, of eight bytes each, in the order of numbers.
  let stored: [UInt8]
  /// The badges of devices in the page's range that have notes, because an earlier build has counted them, or a request with the
  /// message's id; nil if they are too many, or if another campaign has the message's id.
  let noted: [Int64: Int64]?
  var added: [(device: Int64, badge: Int64)] = []

  func badge(of device: Int64) -> Int64? { Self.badge(of: device, in: stored) ?? noted?[device] }

  static func badge(of device: Int64, in record: [UInt8]) -> Int64? {
    var (low, high) = (0, record.count / 16)
    while low < high {
      let middle = (low + high) / 2
      if number(2 * middle, in: record) < device { low = middle + 1 } else { high = middle }
    }
    return low < record.count / 16 && number(2 * low, in: record) == device ? number(2 * low + 1, in: record) : nil
  }

  private static func number(_ place: Int, in record: [UInt8]) -> Int64 {
    record.span.bytes.bigEndian(Int64.self, at: 8 * place)
  }

  /// The new record; nil if nothing was added.
  var record: [UInt8]? {
    guard !added.isEmpty else { return nil }
    let known = (0..<stored.count / 16).map { (Self.number(2 * $0, in: stored), Self.number(2 * $0 + 1, in: stored)) }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(16 * (known.count + added.count))
    for (device, badge) in (known + added).sorted(by: { $0.0 < $1.0 }) {
      bytes.appendBigEndian(device)
      bytes.appendBigEndian(badge)
    }
    return bytes
  }
}
