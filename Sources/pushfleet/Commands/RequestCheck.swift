import Delivery
import PushCore
import Settings

/// Reports, before anything is published, which requests a worker with the configuration would refuse, and why.
struct RequestCheck {
  private var question: ExplainQuestion

  /// - Parameter app: nil if each request names its own application.
  init(_ configuration: Configuration, app: String?) {
    question = ExplainQuestion(
      body: [], coversBothProviders: false, configuration: configuration, rehearsal: Rehearsal(configuration), app: app, now: 0)
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
    var question = question
    (question.body, question.now) = (body, RegistrySession.now)
    let explanation = question.answer()
    if let rejection = explanation.rejection { return rejection }
    let named = Set(explanation.namedWays)
    let views = explanation.views.filter { named.isEmpty || named.contains($0.way) }
    let rejections = views.compactMap(\.rejection)
    // For targets in the registry, one accepting platform is enough. A platform without content for it doesn't count.
    if rejections.count == views.count { return rejections.first }
    return !named.isEmpty ? rejections.first { $0.code != .nothingForPlatform } : nil
  }
}
