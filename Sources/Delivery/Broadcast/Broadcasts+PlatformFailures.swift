import PushCore

/// The reason why a broadcast fails for a group of devices of one platform. The page that meets the first such device publishes
/// one dead letter for all of them, and the tickets of later pages say so.
struct PlatformFailure: Hashable {
  /// The raw value is part of a page's ticket.
  enum Cause: UInt8 {
    case untranslatable, noCredential, otherSender
    /// Of web push: the subscription's VAPID key isn't configured, or its push service isn't allowed.
    case unknownKey, disallowedHost

    init(_ rejection: Rejection) {
      self =
        switch rejection {
        case .noCredential: .noCredential
        case .unknownKey: .unknownKey
        case .disallowedHost: .disallowedHost
        default: .otherSender
        }
    }
  }

  var platform: Platform
  var cause: Cause
}

/// Registered devices without a matching pool.
extension Rejection {
  static let noCredential = Rejection(.mismatchSenderID, "no credential for the device's platform, environment and sender")
  static let otherSender = Rejection(.mismatchSenderID, "the device is registered with another sender")
  static let unknownKey = Rejection(.mismatchSenderID, "the subscription's VAPID key is not configured")
  static let disallowedHost = Rejection(.invalidRegistration, "the endpoint's host or port is not allowed by `webpush.hosts`")
}

extension Broadcasts {
  /// One dead letter for each reason, before the next page is published.
  func platformFailures(_ entry: InFlight) -> [AudienceStep] {
    guard entry.isOfCampaign else { return [] }
    var letters: [AudienceStep] = []
    var ways: Set<PushWay> = []
    var last: PushWay?
    for index in entry.recipients.indices {
      let way = entry.way(index)
      switch entry.recipients[index].state {
      case .waiting:
        // Most devices of a page are alike.
        guard way != last else { continue }
        last = way
        guard ways.insert(way).inserted else { continue }
        var report: LossReport?
        let verdict = translator.rehearse(entry, way, at: tools.time.wallClock, &report)
        if case .failure(let rejection)? = verdict, publisher.leavesLetter(rejection) {
          letters += letter(.untranslatable, way.platform, rejection, entry)
        }
      case .refused(let rejection):
        letters += letter(PlatformFailure.Cause(rejection), way.platform, rejection, entry)
      default: continue
      }
    }
    return letters
  }

  /// Empty if an earlier page, or an earlier device of this one, has reported the failure.
  private func letter(
    _ cause: PlatformFailure.Cause, _ platform: Platform, _ rejection: Rejection, _ entry: InFlight
  ) -> [AudienceStep] {
    guard entry.broadcast.page?.reported.insert(PlatformFailure(platform: platform, cause: cause)).inserted == true else {
      return []
    }
    let whom =
      cause == .untranslatable
      ? "every \(platform.label) device of the broadcast"
      : "all \(platform.label) devices of the broadcast with this problem"
    let reason = "for \(whom): \(rejection.reason)"
    return [.letter(DeadLetter(Rejection(rejection.code, reason), failedAt: tools.time.wallClock))]
  }
}
