import AMQP
import Broker
import PushCore
import Settings
import Wire

/// Shows what workers with a configuration would send for a request, with their own code for parsing, admission, routing and
/// translation.
public struct Rehearsal {
  private let apps = Applications()
  private let intake: Intake
  /// A registry, which counts badges, is configured.
  private let hasRegistry: Bool
  private let pages: RichPageSettings?

  public init(_ configuration: Configuration) {
    pages = configuration.usedRichPages
    intake = Intake(apps: apps, limits: configuration.limits, pageBytes: pages?.bytes)
    hasRegistry = configuration.registry != nil
    for app in configuration.apps {
      let uses = apps.put(app, nil).uses
      for (pool, use) in uses.enumerated() { use.assign(pool: use.isThere ? pool : nil) }
      PoolUse.chooseFirst(uses)
    }
  }

  /// For a single application with all credentials.
  /// - Parameters:
  ///   - topic: the bundle ID.
  ///   - package: the allowed `restricted_package_name`.
  public init(topic: String, package: [UInt8]?) {
    pages = nil
    intake = Intake(apps: apps, limits: RequestLimits())
    hasRegistry = true
    let index = apps.put(Array(topic.utf8), packages: package.map { [$0] } ?? [], senders: [])
    let route = APNsRoute(pool: 0, settings: APNsSettings(topic: topic))
    let routes = apps[index].routes
    (routes.apns, routes.production, routes.sandbox, routes.fcm) = (route, route, route, 1)
    routes.hasWebPush = true
  }

  public struct Admitted {
    fileprivate let entry: InFlight
    public let request: SendRequest
    fileprivate let translator: Translator
    /// The deadline for FCM devices: `apns-expiration` limits only APNs tokens.
    fileprivate let deadlineOfFCM: Int64
    fileprivate let hasRegistry: Bool
    /// No sender of the application has FCM.
    fileprivate let lacksFCM: Bool
    fileprivate let now: Int64

    public var hasAPNs: Bool { apnsRoute != nil }
    public var hasFCM: Bool { entry.route.routes.fcm != nil }
    public var hasWebPush: Bool { entry.route.routes.hasWebPush }
    private var apnsRoute: APNsRoute? { entry.route.routes.apnsRoute(entry.route.environment) }

    /// For tokens in the request, or for broadcast channels.
    public func apns(toChannels: Bool, _ report: inout LossReport?) throws(Rejection) -> APNsTemplate {
      guard let route = apnsRoute else {
        throw Rejection(.mismatchSenderID, "the application has no APNs credential")
      }
      try requireCounter(hasCounters: !toChannels)
      return try translator.apns(entry, pool: route.pool, isBroadcast: toChannels, isRehearsed: true, at: now, &report)
    }

    /// The rejection if the sender has no FCM credential. If the application has none either, it names a text that can't be a
    /// token.
    private var withoutFCM: Rejection {
      if lacksFCM {
        let nodes =
          if case .list = request.targets {
            Array(request.document.elements(of: request.targetNode))
          } else {
            [request.targetNode]
          }
        for (target, node) in zip(request.targets.named, nodes) {
          if case .fcm = target, !FCMAddress.canBeGiven(request.document.string(node)) { return .noToken }
        }
      }
      return Rejection(.mismatchSenderID, "the sender has no FCM credential")
    }

    /// For devices, or for FCM topics.
    public func fcm(toTopics: Bool, _ report: inout LossReport?) throws(Rejection) -> FCMTemplate {
      guard hasFCM else { throw withoutFCM }
      try requireCounter(hasCounters: !toTopics)
      let template = try translator.fcm(entry, isRehearsed: true, deadline: deadlineOfFCM, at: now, &report)
      if toTopics, let refusal = template.refusalForTopics(of: request) { throw refusal }
      return template
    }

    public func webpush(_ report: inout LossReport?) throws(Rejection) -> WebPushTemplate {
      guard hasWebPush else { throw Rejection(.mismatchSenderID, "the sender has no web push credential") }
      try requireCounter(hasCounters: true)
      return try translator.webpush(entry, isRehearsed: true, at: now, &report)
    }

    /// Throws if the badge is to be counted, but the target has no counter.
    private func requireCounter(hasCounters: Bool) throws(Rejection) {
      if case .automatic? = request.badgeOfCounter, !hasCounters || !hasRegistry { throw .noCounter }
    }
  }

  /// Admits a request as a worker receives it.
  /// - Parameters:
  ///   - app: `app_id`; nil if the message has none.
  ///   - sender: `x-push-sender`.
  ///   - environment: `x-push-environment`.
  ///   - messageID: `message_id`; nil if the message has none, so that a worker would generate it.
  ///   - published: Unix milliseconds of publishing.
  ///   - now: Unix milliseconds of sending.
  public func admit(
    _ body: [UInt8], app: String?, sender: String?, environment: String?, messageID: String?, published: Int64, now: Int64
  ) -> Result<Admitted, Rejection> {
    var delivery = Delivery()
    delivery.body = body
    delivery.bodySize = UInt64(body.count)
    delivery.properties.appID = app.map { Array($0.utf8) }
    delivery.properties.messageID = messageID.map { Array($0.utf8) }
    let choices = [(MessageHeaders.sender, sender), (MessageHeaders.environment, environment)]
    for (name, value) in choices { if let value { delivery.properties.headers.append(name, .text(value)) } }
    let entry = InFlight(index: 0)
    var random = RandomSource(seed: 0)
    intake.identify(entry, delivery, using: &random)
    if let rejection = intake.admit(entry, delivery, nil, firstSeen: published, at: now) {
      return .failure(rejection)
    }
    guard let request = entry.request, let app = entry.identity.app else {
      return .failure(Rejection(.internalServerError, "a request without an application"))
    }
    if let rejection = apps[app].rights.refusal(ofTopic: request.topic) { return .failure(rejection) }
    let translator = Translator(apps: apps, pages: pages)
    do throws(Rejection) {
      if let rejection = translator.route(entry, try translator.choice(of: delivery.properties.headers)) { throw rejection }
    } catch { return .failure(error) }
    guard now <= entry.identity.deadline else {
      return .failure(Rejection(.expired, "its time to live has passed: it is not sent"))
    }
    let deadlineOfFCM =
      request.expirationOfTokens == nil
      ? entry.identity.deadline
      : Intake.deadline(
        request.lifetime, delivery.properties, from: entry.identity.published, seen: published)
    return .success(
      Admitted(
        entry: entry, request: request, translator: translator, deadlineOfFCM: deadlineOfFCM, hasRegistry: hasRegistry,
        lacksFCM: apps[app].lacksFCM, now: now))
  }
}
