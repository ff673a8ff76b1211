/// The queues a shard consumes, in the order in which it serves them.
enum WorkQueue: Int, CaseIterable {
  case sendHigh, fanoutHigh, sendNormal, fanoutNormal

  /// Its messages are pages of audiences.
  var isFanOut: Bool { self == .fanoutHigh || self == .fanoutNormal }

  var isHigh: Bool { self == .sendHigh || self == .fanoutHigh }

  /// Where the pages of an audience go that was asked for here.
  var fanOut: WorkQueue {
    switch self {
    case .sendHigh, .fanoutHigh: .fanoutHigh
    case .sendNormal, .fanoutNormal: .fanoutNormal
    }
  }

  /// Where a request goes that names one device of a page.
  var sending: WorkQueue {
    switch self {
    case .sendHigh, .fanoutHigh: .sendHigh
    case .sendNormal, .fanoutNormal: .sendNormal
    }
  }

  /// The exchange, after the prefix, and the routing key that lead here.
  var route: (exchange: String, key: String) {
    switch self {
    case .sendHigh: (Topology.send, "high")
    case .fanoutHigh: (Topology.fanOut, "high")
    case .sendNormal: (Topology.send, "normal")
    case .fanoutNormal: (Topology.fanOut, "normal")
    }
  }

  /// How the topology names it after the prefix, and how a retry finds its way back.
  var origin: String { "\(route.exchange).\(route.key)" }

  init?(origin: [UInt8]) {
    guard let queue = Self.allCases.first(where: { origin.elementsEqual($0.origin.utf8) }) else { return nil }
    self = queue
  }
}
