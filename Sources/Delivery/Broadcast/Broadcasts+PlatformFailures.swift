import PushCore

/// Why a broadcast fails for each device of a platform that it concerns. That is one dead letter, by the page that comes upon the first of
/// these devices, and not one for each: the pages after it know from their tickets.
struct PlatformFailure: Hashable {
  enum Cause {
    case untranslatable, noCredential, otherSender
  }

  var platform: Platform
  var cause: Cause
}

/// Devices of the registry that no pool takes.
extension Rejection {
  static let noCredential = Rejection(.mismatchSenderID, "no credential for the device's platform, environment and sender")
  static let otherSender = Rejection(.mismatchSenderID, "the device is registered with another sender")
}

extension Broadcasts {
  /// One dead letter for each reason, before the next page is on the queue.
  func platformFailures(_ entry: InFlight) -> [AudienceStep] {
    guard entry.isOfCampaign else { return [] }
    var letters: [AudienceStep] = []
    var ways: Set<Int> = []
    for recipient in entry.recipients {
      switch recipient.state {
      case .waiting where ways.insert(recipient.pool).inserted:
        var report: LossReport?
        let verdict = translator.rehearse(entry, PushWay(recipient), at: time.wallClock, &report)
        if case .failure(let rejection)? = verdict, publisher.leavesLetter(rejection) {
          letters += letter(.untranslatable, recipient.platform, rejection, entry)
        }
      case .refused(let rejection):
        letters += letter(rejection == .noCredential ? .noCredential : .otherSender, recipient.platform, rejection, entry)
      default: continue
      }
    }
    return letters
  }

  /// None where an earlier page, or an earlier device of this one, has said so.
  private func letter(
    _ cause: PlatformFailure.Cause, _ platform: Platform, _ rejection: Rejection, _ entry: InFlight
  ) -> [AudienceStep] {
    guard entry.broadcast.page?.reported.insert(PlatformFailure(platform: platform, cause: cause)).inserted == true else {
      return []
    }
    let whom =
      cause == .untranslatable
      ? "every \(platform.label) device of the broadcast"
      : "all \(platform.label) devices of the broadcast that this concerns"
    let reason = "for \(whom): \(rejection.reason)"
    return [.letter(DeadLetter(Rejection(rejection.code, reason), failedAt: time.wallClock))]
  }
}
