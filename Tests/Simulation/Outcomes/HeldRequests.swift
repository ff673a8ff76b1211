import BrokerModel
import Wire

/// The copies of each request that workers hold, and the time at which a worker lost its last one.
struct HeldRequests {
  private struct Place: Hashable {
    var queue: String
    var number: Int
  }

  private struct Holding: Hashable {
    var id: String
    var worker: String
  }

  private var given: [Place: Holding] = [:]
  private var counts: [Holding: Int] = [:]
  private var lost: [Holding: MonotonicTime] = [:]
  private var everLost: Set<Holding> = []

  mutating func delivered(_ message: Message, _ id: String, _ queue: String, to worker: String) {
    let holding = Holding(id: id, worker: worker)
    given[Place(queue: queue, number: message.number)] = holding
    counts[holding, default: 0] += 1
    lost[holding] = nil
  }

  mutating func left(_ message: Message, _ queue: String) { _ = take(message, queue) }

  mutating func cameBack(_ message: Message, _ queue: String, at now: MonotonicTime) {
    guard let holding = take(message, queue) else { return }
    everLost.insert(holding)
    guard counts[holding] == nil else { return }
    lost[holding] = now
  }

  private mutating func take(_ message: Message, _ queue: String) -> Holding? {
    guard let holding = given.removeValue(forKey: Place(queue: queue, number: message.number)) else { return nil }
    let count = counts[holding, default: 0] - 1
    counts[holding] = count > 0 ? count : nil
    return holding
  }

  /// True if the worker has no copy left and never lost one.
  func hasSettledAll(_ id: String, _ worker: String) -> Bool {
    let holding = Holding(id: id, worker: worker)
    return counts[holding] == nil && !everLost.contains(holding)
  }

  mutating func ended(_ worker: String) { everLost = everLost.filter { $0.worker != worker } }

  /// When the worker lost its last copy; nil if it has one or never had one.
  func lost(_ id: String, by worker: String) -> MonotonicTime? { lost[Holding(id: id, worker: worker)] }
}
