import AMQP
import Broker
import DeviceRegistry

/// The consumer of the registry's queue.
package protocol ChangeSource: AnyObject {
  func acknowledge(_ delivery: Delivery)
  func registryChanged(isUsable: Bool)
  func giveBack()
  /// Asks the broker whether the consumer is still registered after this call.
  /// - Parameter then: receives false if the broker can't answer now; not called if the consumer is lost first.
  func prove(_ then: @escaping (Bool) -> Void)
}

extension ChangeFeed: ChangeSource {}

/// The right to apply the changes that a consumer of the registry's queue receives. A worker that was suspended or cut off from
/// the broker may hold changes that another worker has applied since, with later ones. So the registry only accepts changes
/// with the fence number that was claimed last. A worker uses a number only after the broker has confirmed that its consumer
/// was still registered after the claim.
final class ChangeClaim {
  private enum State {
    /// Becomes asked when there are changes to apply.
    case none
    /// The registry is asked for a number. Becomes proving, or none if that fails.
    case asked
    /// The broker is asked. Becomes proven, or unproven if it can't answer now.
    case proving
    /// Becomes proving.
    case unproven(Int64)
    /// Becomes none when another worker has claimed a later number.
    case proven(Int64)
  }

  weak var source: (any ChangeSource)?
  /// Called with true when changes can be applied, with false when the registry gave no number.
  var onStep: (_ isProven: Bool) -> Void = { _ in }
  private let registry: RegistryClient?
  private var state = State.none
  /// The number of ended claims: distinguishes late answers from those to the present claim.
  private var claims = 0

  init(_ registry: RegistryClient?) { self.registry = registry }

  var isEnded: Bool { if case .none = state { true } else { false } }

  /// The fence number to apply changes with. Nil if there is none yet; then the next step towards it has begun.
  func number() -> Int64? {
    switch state {
    case .proven(let number): return number
    case .unproven(let number): prove(number)
    case .none: ask()
    case .asked, .proving: break
    }
    return nil
  }

  /// Another worker has claimed a later number, or the consumer is gone.
  func end() {
    state = .none
    claims += 1
  }

  private func ask() {
    state = .asked
    registry?.call(.write(.devices) { store, _ in try store.claimChanges() }) { [weak self, claims] result in
      guard let self, claims == self.claims else { return }
      switch result {
      case .success(let number): prove(number)
      case .failure:
        state = .none
        onStep(false)
      }
    }
  }

  private func prove(_ number: Int64) {
    state = .proving
    source?.prove { [weak self, claims] isShown in
      guard let self, claims == self.claims else { return }
      state = isShown ? .proven(number) : .unproven(number)
      if isShown { onStep(true) }
    }
  }
}
