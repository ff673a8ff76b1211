import Providers
import PushCore

/// What is noted of requests on their way.
extension Pipeline {
  func traceSent(_ entry: InFlight, _ index: Int) {
    if isTracing { entry.trace.sent(index, at: time.now) }
  }

  func traceAnswer(_ entry: InFlight, _ index: Int, _ meaning: ReplyMeaning, _ pool: ProviderPool) {
    guard isTracing else { return }
    let code = meaning.reaction.code
    entry.trace.answered(
      index, .answered(status: meaning.status), code, code == nil ? "" : DeadLetterLog.words(of: meaning.reason),
      connection: pool.answering, isPlain: code == nil, at: time.now)
  }

  func traceSilence(_ entry: InFlight, _ index: Int, _ answer: RequestTrace.Push.Answer, _ reason: String, _ pool: ProviderPool)
  {
    guard isTracing else { return }
    entry.trace.answered(
      index, answer, .unknown, DeadLetterLog.words(of: reason), connection: pool.answering, isPlain: false, at: time.now)
  }

  func trace(_ publication: Publication, _ entry: InFlight) {
    switch publication.kind {
    case .retry: entry.trace.next = .ladder(step: publication.routingKey)
    case .hold: entry.trace.next = .hold
    case .page: entry.trace.next = .pages
    case .deadLetter: entry.trace.deadLetters += 1
    case .feedback: entry.trace.feedback += 1
    case .result, .receipt, .reply: break
    }
  }

  /// The request is acknowledged.
  func traceEnd(_ entry: InFlight) {
    guard let tracer, tracer.isOn else { return }
    guard tracer.admits(entry.traced, at: time.now) else { return }
    tracer.append { TraceRecord(entry, self).append(to: &$0) }
  }

  private var isTracing: Bool { tracer?.isOn == true || spans != nil }
}

extension InFlight {
  fileprivate var traced: TraceRecorder.Outcome {
    if self.trace.next != nil || self.trace.isDuplicate || self.attempt.dryRun != nil { return .other }
    guard self.trace.refusal == nil, isDelivered else { return .failure }
    return self.attempt.earlier == 0 ? .success : .other
  }
}
