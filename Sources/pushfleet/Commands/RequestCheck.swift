import Foundation
import PushCore
import Worker

/// Says of requests, before any is published, which ones a worker with the configuration would refuse, and why.
struct RequestCheck {
  private let rehearsal: Rehearsal
  /// nil where each request names its own.
  private let app: String?

  init(_ configuration: Configuration, app: String?) {
    rehearsal = Rehearsal(configuration)
    self.app = app
  }

  /// How many are refused; each is said with its place.
  func refused(in requests: RequestFiles) -> Int {
    var refused = 0
    while let request = requests.next() {
      guard let rejection = rejection(of: request.body) else { continue }
      refused += 1
      Terminal.complain("\(request.place): \(rejection)")
    }
    return refused + requests.refused
  }

  func rejection(of body: [UInt8]) -> Rejection? {
    let now = Int64(Date().timeIntervalSince1970 * 1000)
    let admitted: Rehearsal.Admitted
    switch rehearsal.admit(Rehearsal.Question(body: body, app: app, published: now, now: now)) {
    case .failure(let rejection): return rejection
    case .success(let made): admitted = made
    }
    let platforms = Self.platforms(admitted.request.targets)
    let rejections = platforms.compactMap { rejection(admitted, $0) }
    // Where the registry knows whose devices they are, one platform that takes it is enough; so it is where it has nothing for the other.
    if rejections.count == platforms.count { return rejections.first }
    return Self.namesTokens(admitted.request.targets) ? rejections.first { $0.code != .nothingForPlatform } : nil
  }

  private func rejection(_ admitted: Rehearsal.Admitted, _ platform: Platform) -> Rejection? {
    var report: LossReport?
    switch platform {
    case .apns:
      guard admitted.hasAPNs else { return Rejection(.mismatchSenderID, "the application has no APNs credential") }
      if case .failure(let rejection) = admitted.apns(&report) { return rejection }
    case .fcm: if case .failure(let rejection) = admitted.fcm(&report) { return rejection }
    }
    return nil
  }

  private static func platforms(_ targets: Targets) -> [Platform] {
    let named = tokens(of: targets)
    return named.isEmpty ? Platform.allCases : Platform.allCases.filter(named.contains)
  }

  private static func namesTokens(_ targets: Targets) -> Bool { !tokens(of: targets).isEmpty }

  /// The providers whose own tokens and addresses it names.
  static func tokens(of targets: Targets) -> Set<Platform> {
    targets.named.reduce(into: []) { platforms, target in
      switch target {
      case .apns, .channel: platforms.insert(.apns)
      case .fcm, .fcmTopics: platforms.insert(.fcm)
      case .topic, .all, .user, .group, .registration, .invalid: break
      }
    }
  }
}
