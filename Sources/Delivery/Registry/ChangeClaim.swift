import AMQP
import Broker
import DeviceRegistry

/// Where changes of the registry come from.
package protocol ChangeSource: AnyObject {
  func acknowledge(_ delivery: Delivery)
  func registryChanged(isUsable: Bool)
  /// Returns the changes in hand.
  func giveBack()
  /// Asks whether the consumption that brought the changes in hand held after the question was put.
  /// - Parameter then: with false where the broker can't say now; not called where the consumption is lost before.
  func prove(_ then: @escaping (Bool) -> Void)
}

extension ChangeFeed: ChangeSource {}

/// The right to apply what a consumption of the registry's queue brings.
///
/// A worker that stood still, or was cut off from the broker, may hold changes that another one has had meanwhile, and later ones. So the
/// registry takes those alone that come with the number claimed last, and a number is used only once the broker has shown that the
/// consumption still held after it was claimed.
final class ChangeClaim {
  private enum State {
    /// Becomes asked when there are changes to apply.
    case none
    /// The registry has been asked for a number. Becomes proving, or none where that fails.
    case asked
    /// The broker has been asked. Becomes proven, or unproven where it can't say now.
    case proving
    /// Becomes proving.
    case unproven(Int64)
    /// Becomes none when the registry says that another one was claimed since.
    case proven(Int64)
  }

  weak var source: (any ChangeSource)?
  /// Changes can be applied; or the registry gave no number.
  var onStep: (_ isProven: Bool) -> Void = { _ in }
  private let registry: RegistryClient?
  private var state = State.none
  /// How many there were: tells answers to the present one from those to earlier ones.
  private var claims = 0

  init(_ registry: RegistryClient?) { self.registry = registry }

  var isEnded: Bool { if case .none = state { true } else { false } }

  /// The number to apply changes with; nil where it isn't there, and then what is next towards it has been asked for.
  func number() -> Int64? {
    switch state {
    case .proven(let number): return number
    case .unproven(let number): prove(number)
    case .none: ask()
    case .asked, .proving: break
    }
    return nil
  }

  /// The registry has said that another one was claimed since, or the consumption is over.
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
