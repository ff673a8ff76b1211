import Gateway
import PushCore
import Reactor

/// Reads the trace for the gateway, as `pushfleet trace` does.
extension LetterRunner {
  /// Seconds. The console waits for an answer for ten.
  private static let longestTrace = 8.0
  /// The newest campaigns to look at, because the registry is asked for each device and campaign.
  private static let mostCampaigns = 200
  /// The newest requests in an answer.
  private static let mostRequests = 10

  func trace(_ order: TraceOrder, then: @escaping @Sendable (LetterOutcome) -> Void) {
    do {
      try startThread(named: "trace") {
        do { then(LetterOutcome(details: try answer(order))) } catch { then(LetterOutcome(failure: Self.words(error))) }
      }
    } catch { then(LetterOutcome(failure: Self.words(error))) }
  }

  private func answer(_ order: TraceOrder) throws -> [UInt8] {
    let question = TraceQuestion(order.kind, order.text, app: order.app)
    let store = try configuration.registry.map { try RegistrySession.open($0, configuration, isReading: true) }
    var history: DeviceHistory?
    if let store {
      // An unknown device may still be in the trace.
      do { history = try question.history(of: [Array(order.app.utf8)], in: store, most: Self.mostCampaigns) } catch let failure
        as CommandFailure
        where failure.status == .badInput
      {}
    }
    let reader = try TraceReader(configuration, subject: TraceSubject(question, history), within: Self.longestTrace)
    reader.handlesSignals = false
    reader.complain = { _ in }
    // A fleet without a trace still has a registry.
    do { try reader.run() } catch let failure as CommandFailure where failure.status == .badInput && history != nil {}
    let story = try TraceStory(reader.rounds, history, store, prefix: configuration.prefix).newest(Self.mostRequests)
    let text = TraceText(prefix: configuration.prefix).text(of: story, newestFirst: true)
    let answer: JSONObject = [
      "rounds": JSONRaw(JSONObjectWriter.array(story.json)), "text": text, "left_out": reader.leftOut,
    ]
    return answer.line
  }
}
