import BrokerModel

/// The copies of each request in queues from which workers take it, and how many there may have been at most at one time: each may be sent.
struct Copies {
  /// In hand ones included.
  private var waiting: [String: Int] = [:]
  private var returns: [String: Int] = [:]
  /// By the producer.
  private var requests: [String: Int] = [:]
  /// By the number of a worker's publication: a confirm that doesn't come makes it publish another one.
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

  /// How often each device of a request may have been sent to: once for each time that a worker was given a copy of it and nothing says that
  /// another one was not at it.
  var mostSends: [String: Int] {
    var most = requests
    for (id, count) in returns { most[id, default: 0] += count }
    for id in unconfirmed.values { most[id, default: 0] += 1 }
    return most
  }
}
