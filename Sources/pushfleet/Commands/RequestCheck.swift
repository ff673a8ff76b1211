import Delivery
import PushCore
import Settings

/// Reports, before anything is published, which requests a worker with the configuration would refuse, and why.
struct RequestCheck {
  private let rehearsal: Rehearsal
  /// nil if each request names its own application.
  private let app: String?

  init(_ configuration: Configuration, app: String?) {
    rehearsal = Rehearsal(configuration)
    self.app = app
  }

  /// Reports each refused request with its place.
  /// - Returns: the number of refused requests; nil if a signal came first.
  func refused(in requests: RequestFiles, unless interruption: Interruption) throws -> Int? {
    var refused = 0
    while !interruption.hasCome {
      guard let request = requests.next() else {
        if let problem = requests.problem { throw problem }
        guard let input = requests.awaited else { return refused + requests.refused }
        try interruption.wait(for: input)
        continue
      }
      guard let rejection = rejection(of: request.body) else { continue }
      refused += 1
      Terminal.notice("\(request.place): \(rejection)")
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
    let ways = Explanation.Way.allCases.filter { way in
      named.isEmpty ? way.isToDevices && (way != .browser || admitted.hasWebPush) : named.contains(way)
    }
    let rejections = ways.compactMap { rejection(admitted, $0) }
    // For targets in the registry, one accepting platform is enough. A platform without content for it doesn't count.
    if rejections.count == ways.count { return rejections.first }
    return !named.isEmpty ? rejections.first { $0.code != .nothingForPlatform } : nil
  }

  private func rejection(_ admitted: Rehearsal.Admitted, _ way: Explanation.Way) -> Rejection? {
    var report: LossReport?
    do throws(Rejection) {
      switch way {
      case .phonesOfAPNs, .channelsOfAPNs: _ = try admitted.apns(toChannels: way == .channelsOfAPNs, &report)
      case .fcm, .topicsOfFCM: _ = try admitted.fcm(toTopics: way == .topicsOfFCM, &report)
      case .browser: _ = try admitted.webpush(&report)
      }
      return nil
    } catch { return error }
  }
}
