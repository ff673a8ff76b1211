import Delivery
import Foundation
import PushCore
import Settings

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
  /// - Returns: nil where an interruption came first.
  func refused(in requests: RequestFiles, unless interruption: Interruption) throws -> Int? {
    var refused = 0
    while !interruption.hasCome {
      guard let request = requests.next() else {
        guard let input = requests.awaited else { return refused + requests.refused }
        try interruption.wait(for: input)
        continue
      }
      guard let rejection = rejection(of: request.body) else { continue }
      refused += 1
      Terminal.complain("\(request.place): \(rejection)")
    }
    return nil
  }

  func rejection(of body: [UInt8]) -> Rejection? {
    let now = RegistrySession.now
    let admitted: Rehearsal.Admitted
    switch rehearsal.admit(Rehearsal.Question(body: body, app: app, published: now, now: now)) {
    case .failure(let rejection): return rejection
    case .success(let made): admitted = made
    }
    let named = Set(admitted.request.targets.named.compactMap(\.way))
    let ways = Explanation.Way.allCases.filter { named.isEmpty ? $0.isToDevices : named.contains($0) }
    let rejections = ways.compactMap { rejection(admitted, $0) }
    // Where the registry knows whose devices they are, one platform that takes it is enough; so it is where it has nothing for the other.
    if rejections.count == ways.count { return rejections.first }
    return !named.isEmpty ? rejections.first { $0.code != .nothingForPlatform } : nil
  }

  private func rejection(_ admitted: Rehearsal.Admitted, _ way: Explanation.Way) -> Rejection? {
    var report: LossReport?
    switch way {
    case .phonesOfAPNs, .channelsOfAPNs:
      guard admitted.hasAPNs else { return .noAPNsCredential }
      if case .failure(let rejection) = admitted.apns(toChannels: way == .channelsOfAPNs, &report) { return rejection }
    case .fcm, .topicsOfFCM:
      if case .failure(let rejection) = admitted.fcm(toTopics: way == .topicsOfFCM, &report) { return rejection }
    }
    return nil
  }
}
