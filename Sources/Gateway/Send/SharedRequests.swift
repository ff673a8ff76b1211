import DeviceRegistry
import Reactor
import Wire

/// The requests of all gateways of a registry: one gateway publishes, and all give the same answer. While the registry can't be
/// used, each gateway recognises only its own requests, and the workers those that they have seen.
struct SharedRequests {
  /// Seconds between checks of a request that another gateway is publishing.
  private static let pause = 0.1

  let registry: RegistryClient
  let loop: EventLoop
  /// Seconds for which a request is remembered.
  let lifetime: Double
  /// Seconds to wait for another gateway's answer. After that the gateway has died or has no answer either.
  let answerTimeout: Double

  private func until(after seconds: Double) -> Int64 { loop.wallClock + Int64(seconds * 1_000) }

  /// - Parameters:
  ///   - message: of ``GatewayRequest/message(_:app:)``.
  ///   - deadline: nil for the first look.
  ///   - then: gets the known outcome, or nil if this gateway must publish the request. `isLate` if it has waited for another
  ///     one.
  func claim(
    _ name: [UInt8], _ message: [UInt8], body: [UInt8], deadline: MonotonicTime? = nil,
    then: @escaping (SendService.Outcome?, _ isLate: Bool) -> Void
  ) {
    let deadline = deadline ?? loop.now.advanced(bySeconds: answerTimeout)
    // An unanswered request is remembered for at least the wait for an answer and for the confirm.
    let until = until(after: max(lifetime, answerTimeout + GatewayBroker.confirmTime))
    registry.call(.claimRequest(name, message: message, body: body, until: until)) { result in
      guard case .success(let known?) = result else { return then(nil, false) }
      guard known.body == body else { return then(.reused, false) }
      switch known.state {
      case .accepted: then(.accepted, false)
      case .result(let answer): then(.result(answer), false)
      case .again: then(nil, false)
      case .underWay:
        guard loop.now < deadline else { return then(nil, true) }
        loop.schedule(after: Self.pause) { claim(name, message, body: body, deadline: deadline, then: then) }
      }
    }
  }

  /// Adds the result of a request that was settled as accepted.
  func learn(_ name: [UInt8], _ result: [UInt8], then: @escaping () -> Void) {
    registry.call(.settleRequest(name, .result(result), until: until(after: lifetime), isLate: true)) { _ in then() }
  }

  /// - Parameter then: gets the valid answer, which is another gateway's if that was first.
  func settle(_ name: [UInt8], _ outcome: SendService.Outcome, then: @escaping (SendService.Outcome) -> Void) {
    let state: GatewayRequest.State? =
      switch outcome {
      case .result(let body): outcome.isFinal ? .result(body) : nil
      case .accepted: .accepted
      case .unknown: .again
      case .refused, .reused: nil
      }
    registry.call(.settleRequest(name, state, until: until(after: lifetime))) { result in
      switch result {
      case .success(.accepted?): then(.accepted)
      case .success(.result(let answer)?): then(.result(answer))
      default: then(outcome)
      }
    }
  }
}
