import DeviceRegistry
import Providers
import PushCore

/// What follows from a whole request: dead letters, the ladder, its result.
extension Pipeline {
  /// Never admitted: a dead letter as it came, and the same word to whoever waits.
  func reject(_ entry: InFlight, _ rejection: Rejection) {
    observers.note(.refused(rejection), entry)
    conclude(entry) {
      publisher.publish(rejection, for: entry)
      if entry.isWholePage { broadcasts.pageRejected(entry, rejection) }
    }
  }

  /// Too late: not sent to whom it has not reached.
  func expire(_ entry: InFlight) {
    observers.note(.late, entry)
    conclude(entry) {
      // Nobody has got it or a dead letter of his own: one for all names them as it came.
      let isWhole = !entry.isPage && entry.attempt.earlier == 0 && !entry.hasSettledDevice
      if isWhole { publisher.publishOptionalLetter(.expired, for: entry) }
      for index in entry.recipients.indices {
        switch entry.recipients[index].state {
        case .waiting, .sent, .postponed, .refused, .unresolved, .gone: publisher.expire(entry, index, hasLetter: isWhole)
        case .delivered, .failed, .sameAs: continue
        }
      }
      if let page = entry.broadcast.page, let left = page.pending {
        handle(.expired(page, left), entry)
      } else if entry.recipients.isEmpty {
        observers.note(.expired(1), entry)
        publisher.publishResult(of: entry, targets: [.failed(.expired)])
      } else {
        publisher.publishResult(of: entry, targets: entry.resultTargets)
      }
    }
  }

  func expire(_ entry: InFlight, _ index: Int) {
    publisher.expire(entry, index)
    perform(entry.ledger.closed(), entry)
  }

  /// What follows once every recipient has ended or waits: the ladder, or the result.
  func publishConsequences(of entry: InFlight) {
    if entry.isPage { return handle(.devicesEnded, entry) }
    if entry.earliestRetry != nil {
      putOffWhenSafe(entry)
    } else if entry.wantsResult(publisher.results) {
      publisher.publishResult(of: entry, targets: entry.resultTargets, report: entry.attempt.dryRun)
    }
  }
}
