/// The queues that a shard consumes, in the order of their priority.
package enum WorkQueue: Int, CaseIterable {
  case sendHigh, fanoutHigh, sendNormal, fanoutNormal

  package var isFanOut: Bool { self == .fanoutHigh || self == .fanoutNormal }
  package var isHigh: Bool { self == .sendHigh || self == .fanoutHigh }

  /// The queue for the pages of an audience that was requested in this queue.
  package var fanOut: WorkQueue { isHigh ? .fanoutHigh : .fanoutNormal }
  /// The queue for a request that names one device of a page.
  package var sending: WorkQueue { isHigh ? .sendHigh : .sendNormal }

  /// The exchange (without prefix) and the routing key of this queue.
  package var route: (exchange: String, key: String) {
    (isFanOut ? Topology.fanOut : Topology.send, isHigh ? "high" : "normal")
  }

  /// The queue's name without prefix. Retries use it to return here.
  package var origin: String { "\(route.exchange).\(route.key)" }

  package init?(origin: [UInt8]) {
    guard let queue = Self.allCases.first(where: { origin.elementsEqual($0.origin.utf8) }) else { return nil }
    self = queue
  }
}
