import BrokerModel

/// The copies of each request in the workers' queues, and the highest possible number of sends.
struct Copies {
  /// Includes unacknowledged copies.
  private var waiting: [String: Int] = [:]
  private var returns: [String: Int] = [:]
  private var requests: [String: Int] = [:]
  /// Unconfirmed publications of workers by number. Without a confirm, a worker publishes again.
  private var unconfirmed: [Int: String] = [:]

  mutating func came(_ id: String) { waiting[id, default: 0] += 1 }
  mutating func left(_ id: String) { waiting[id, default: 0] -= 1 }
  mutating func cameBack(_ id: String) { returns[id, default: 0] += 1 }
  mutating func confirmed(_ number: Int) { unconfirmed[number] = nil }

  mutating func published(_ number: Int, _ id: String, by client: Client) {
    if client.name == "producer" { requests[id, default: 0] += 1 } else { unconfirmed[number] = id }
  }

  func returns(of id: String) -> Int { returns[id, default: 0] }
  func waiting(of id: String) -> Int { waiting[id, default: 0] }

  /// How often each device of a request may have got it: once for each delivery of a copy that another worker may have handled
  /// too.
  var mostSends: [String: Int] {
    var most = requests
    for (id, count) in returns { most[id, default: 0] += count }
    for id in unconfirmed.values { most[id, default: 0] += 1 }
    return most
  }
}
