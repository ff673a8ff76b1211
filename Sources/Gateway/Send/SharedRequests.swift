import DeviceRegistry
import Reactor
import Wire

/// Requests as all gateways of a registry know them: one publishes, and all give the same answer. While the registry
/// can't be asked each gateway knows only its own, and the workers know what they have seen.
struct SharedRequests {
  /// Seconds between two looks at a request that another gateway has in hand.
  private static let pause = 0.1
  /// Seconds that the broker has for a confirm.
  private static let confirmTime = 15.0

  let registry: RegistryClient
  let loop: EventLoop
  /// Seconds for which a request is known.
  let lifetime: Double
  /// Seconds for which another gateway's answer is waited for: then it has died, or has no answer either.
  let answerTimeout: Double

  /// Unix milliseconds.
  private func until(after seconds: Double) -> Int64 { loop.wallClock + Int64(seconds * 1_000) }

  /// - Parameter then: called with what became of the request; with nil where it is to be published, late where another gateway had it.
  func claim(_ name: [UInt8], body: [UInt8], then: @escaping (SendDesk.Outcome?, _ isLate: Bool) -> Void) {
    look(name, body, deadline: loop.now.advanced(bySeconds: answerTimeout), then)
  }

  private func look(
    _ name: [UInt8], _ body: [UInt8], deadline: MonotonicTime, _ then: @escaping (SendDesk.Outcome?, _ isLate: Bool) -> Void
  ) {
    // Known for as long as its answer may take, and the broker's confirm.
    let until = until(after: max(lifetime, answerTimeout + Self.confirmTime))
    registry.call(.claimRequest(name, body: body, until: until)) { result in
      guard case .success(let known?) = result else { return then(nil, false) }
      guard known.body == body else { return then(.reused, false) }
      switch known.state {
      case .accepted: then(.accepted, false)
      case .result(let answer): then(.result(answer), false)
      case .again: then(nil, false)
      case .underWay:
        guard loop.now < deadline else { return then(nil, true) }
        loop.schedule(after: Self.pause) { look(name, body, deadline: deadline, then) }
      }
    }
  }

  /// - Parameter then: called with the answer that stands, which is another gateway's where that was first.
  func settle(_ name: [UInt8], _ outcome: SendDesk.Outcome, then: @escaping (SendDesk.Outcome) -> Void) {
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
