/// The queues a shard consumes, in the order in which it serves them.
package enum WorkQueue: Int, CaseIterable {
  case sendHigh, fanoutHigh, sendNormal, fanoutNormal

  /// Its messages are pages of audiences.
  package var isFanOut: Bool { self == .fanoutHigh || self == .fanoutNormal }

  package var isHigh: Bool { self == .sendHigh || self == .fanoutHigh }

  /// Where the pages of an audience go that was asked for here.
  package var fanOut: WorkQueue {
    switch self {
    case .sendHigh, .fanoutHigh: .fanoutHigh
    case .sendNormal, .fanoutNormal: .fanoutNormal
    }
  }

  /// Where a request goes that names one device of a page.
  package var sending: WorkQueue {
    switch self {
    case .sendHigh, .fanoutHigh: .sendHigh
    case .sendNormal, .fanoutNormal: .sendNormal
    }
  }

  /// The exchange, after the prefix, and the routing key that lead here.
  package var route: (exchange: String, key: String) {
    switch self {
    case .sendHigh: (Topology.send, "high")
    case .fanoutHigh: (Topology.fanOut, "high")
    case .sendNormal: (Topology.send, "normal")
    case .fanoutNormal: (Topology.fanOut, "normal")
    }
  }

  /// How the topology names it after the prefix, and how a retry finds its way back.
  package var origin: String { "\(route.exchange).\(route.key)" }

  package init?(origin: [UInt8]) {
    guard let queue = Self.allCases.first(where: { origin.elementsEqual($0.origin.utf8) }) else { return nil }
    self = queue
  }
}
