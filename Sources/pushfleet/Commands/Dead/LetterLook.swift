import AMQP
import Broker
import Settings

/// Shows or removes letters; letters that aren't removed return to their places in the queue.
final class LetterLook: LetterWalk {
  private let filter: LetterFilter
  private let isRemoving: Bool
  private let see: (Letter) -> Void
  private(set) var matched = 0
  private var mostReturns: Int64 = 0

  /// - Parameter see: called with each letter that the filter selects.
  init(
    _ configuration: Configuration, _ filter: LetterFilter, _ place: LetterPlace, maximumBody: Int = 0,
    isRemoving: Bool = false,
    see: @escaping (Letter) -> Void = { _ in }
  ) throws {
    self.filter = filter
    self.isRemoving = isRemoving
    self.see = see
    try super.init(configuration, place, maximumBody: maximumBody)
  }

  override var isEnough: Bool { done >= place.mostVisited || filter.limit.map { matched >= $0 } ?? false }

  override func visit(_ delivery: Delivery) -> Step {
    let letter = Letter(delivery, topology)
    if case .integer(let returns)? = delivery.properties.headers["x-delivery-count"] { mostReturns = max(mostReturns, returns) }
    guard filter.matches(letter) else { return .keep }
    matched += 1
    see(letter)
    return isRemoving ? .remove : .keep
  }

  override func work() throws {
    try super.work()
    if mostReturns >= place.mostReturns, !isRemoving {
      complain(
        "a request has returned to its queue \(mostReturns) times. After \(Topology.deliveryLimit) returns the broker makes it a "
          + "dead letter. Each look counts as a return.")
    }
  }

  override var changed: Int { isRemoving ? matched : 0 }

  override var progress: String { isRemoving ? "\(matched) dropped" : super.progress }
}
