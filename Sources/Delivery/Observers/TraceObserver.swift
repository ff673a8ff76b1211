import Providers
import PushCore
import Wire

/// Writes the outcome of a request into the trace when the request is acknowledged.
package struct TraceObserver {
  let apps: Applications
  let time: Turn
  let shard: Int
  package var recorder: TraceRecorder?

  var isOn: Bool { recorder?.isOn == true }

  func ended(_ entry: InFlight, _ pools: [PoolLanes]) {
    guard let recorder, recorder.admits(entry.traced, at: time.now) else { return }
    let record = TraceRecord(entry: entry, apps: apps, pools: pools, shard: shard, time: time)
    recorder.append(record.append)
  }
}

extension RequestTrace {
  mutating func note(_ event: PushEvent, _ recipient: Int, at now: MonotonicTime) {
    switch event {
    case .sent: sent(recipient, at: now)
    case .answered(let meaning, let pool):
      let (answer, code) = (Push.Answer.answered(status: meaning.status), meaning.reaction.code)
      answered(recipient, answer, code, meaning.reason, connection: pool.answering, at: now)
    case .notSent(let reason, let pool):
      answered(recipient, .notSent, .unknown, reason, connection: pool.answering, at: now)
    case .unknown(let reason, let pool):
      answered(recipient, .unknown, .unknown, reason, connection: pool.answering, at: now)
    case .refused(let rejection): if pushes.isEmpty { refusal = rejection }
    case .postponed, .parked, .collapsed, .failed, .expired: return
    }
  }

  mutating func note(_ event: RequestEvent) {
    switch event {
    case .duplicate: isDuplicate = true
    case .refused(let rejection): refusal = rejection
    case .late: isExpired = true
    case .published(let kind, let key):
      switch kind {
      case .retry: next = .ladder(step: key)
      case .hold: next = .hold
      case .page: next = .pages
      case .deadLetter: deadLetters += 1
      case .feedback: feedback += 1
      case .result, .receipt, .reply, .audit: break
      }
    default: return
    }
  }
}

extension InFlight {
  fileprivate var traced: TraceRecorder.Outcome {
    if self.trace.next != nil || self.trace.isDuplicate || self.attempt.dryRun != nil { return .other }
    guard self.trace.refusal == nil, isDelivered else { return .failure }
    return self.attempt.earlier == 0 ? .success : .other
  }
}
