import Delivery
import PushCore
import Settings

struct ExplainQuestion {
  var body: [UInt8]
  /// Replaces the request's own target.
  var target: [UInt8]?
  /// A token in the request represents both providers' devices, unless `target` names it.
  var coversBothProviders = true
  var configuration: Configuration?
  /// Of the configuration; nil to make one for each question.
  var rehearsal: Rehearsal?
  /// The `app_id`, or the bundle ID if there is no configuration. Nil if the request or the configuration determines the
  /// application; without a configuration, a placeholder is shown.
  var app: String?
  /// The headers `x-push-sender` and `x-push-environment`.
  var sender: String?
  var environment: String?
  var messageID: String?
  /// Unix milliseconds; nil means now.
  var published: Int64?
  /// Unix milliseconds of the sending.
  var now: Int64

  private var limits: JSONLimits { configuration?.limits.json ?? RequestLimits().json }

  static func package(in body: [UInt8], _ json: JSONLimits) -> [UInt8]? {
    var limits = RequestLimits()
    limits.json = json
    limits.ignoresUnknownNames = true
    return try? SendRequest.parse(body, limits: limits).get().restrictedPackageName
  }

  func answer() -> Explanation {
    var explanation = explain()
    if explanation.refusal == .messageTooBig { explanation.hint = hintOfPages() }
    if explanation.refusal == .invalidJSON, hasSeveralRequests {
      explanation.hint =
        "The file holds several requests, one a line. Explain one at a time: `head -n 1 FILE | pushfleet explain -`"
    }
    return explanation
  }

  /// True if each of the first two lines is a complete document.
  private var hasSeveralRequests: Bool {
    let lines = body.split(separator: 0x0A, maxSplits: 2).prefix(2)
    return lines.count == 2 && lines.allSatisfy { (try? JSONDocument(Array($0), limits: limits)) != nil }
  }

  private func explain() -> Explanation {
    let explained =
      target.flatMap { target in (try? JSONDocument(body, limits: limits)).map { DeadLetter.body($0, naming: target) } }
      ?? body
    let rehearsal =
      rehearsal ?? configuration.map { Rehearsal($0) }
      ?? Rehearsal(topic: app ?? Self.placeholder, package: Self.package(in: explained, limits))
    let admitted: Rehearsal.Admitted
    switch admit(explained, rehearsal) {
    case .success(let made): admitted = made
    case .failure(let rejection):
      return Explanation(now: now, published: published ?? now, rejection: asWritten(rejection, rehearsal), source: body)
    }
    let views = ways(admitted).map { way in
      switch way {
      case .phonesOfAPNs, .channelsOfAPNs: apnsView(admitted, way)
      case .fcm, .topicsOfFCM: fcmView(admitted, way)
      case .browser: browserView(admitted)
      }
    }
    return Explanation(
      now: now, published: published ?? now, source: target == nil ? body : [], request: admitted.request, views: views)
  }

  /// A hint for a request that is too big only because it isn't sent as a rich page.
  private func hintOfPages() -> String? {
    var limits = RequestLimits()
    limits.ignoresUnknownNames = true
    limits.extensionBytes = .max
    guard let request = try? SendRequest.parse(body, limits: limits).get(), request.hasExtension else { return nil }
    let package = request.restrictedPackageName.map { String(decoding: $0, as: UTF8.self) }
    let apps = configuration?.apps ?? []
    let explained =
      apps.count == 1 ? apps[0] : apps.first { app == $0.id || app == nil && package.map($0.packages.contains) == true }
    return explained.flatMap { configuration?.hintOfPages($0) }
  }

  private func admit(_ body: [UInt8], _ rehearsal: Rehearsal) -> Result<Rehearsal.Admitted, Rejection> {
    rehearsal.admit(
      body, app: app, sender: sender, environment: environment, messageID: messageID, published: published ?? now, now: now)
  }

  /// A rejection whose position refers to the file, not to the request with the replaced target.
  private func asWritten(_ rejection: Rejection, _ rehearsal: Rehearsal) -> Rejection {
    if target != nil, case .failure(let original) = admit(body, rehearsal), original.code == rejection.code {
      return original
    }
    return rejection
  }

  private func ways(_ admitted: Rehearsal.Admitted) -> [Explanation.Way] {
    let named = admitted.request.targets.named
    return Explanation.Way.allCases.filter { way in
      let isMeant = named.isEmpty ? way.isToDevices : named.contains { goes($0, way) }
      return isMeant && (way != .browser || hasBrowsers(admitted))
    }
  }

  /// Most applications have no web push: it is shown if it is configured, or if the request is for browsers.
  private func hasBrowsers(_ admitted: Rehearsal.Admitted) -> Bool {
    let request = admitted.request
    if request.targets.named.contains(where: { $0.way == .browser }) { return true }
    return configuration == nil ? WebpushKey.allCases.contains { request.webpush($0) != nil } : admitted.hasWebPush
  }

  private func goes(_ target: Target, _ way: Explanation.Way) -> Bool {
    switch target {
    case .channel, .fcmTopics: target.way == way
    case .apns, .fcm, .webpush: self.target == nil && coversBothProviders ? way.isToDevices : target.way == way
    default: way.isToDevices
    }
  }

  /// The address shown for the device: `target`, a request's only address, the first channel or topic, or a placeholder.
  private func address(_ request: SendRequest, _ way: Explanation.Way) -> [UInt8] {
    let named = request.targets.named
    switch way {
    case .channelsOfAPNs: for case .channel(let id) in named { return Array(id) }
    case .topicsOfFCM: for case .fcmTopics(let address) in named { return Array(address) }
    case .phonesOfAPNs, .fcm, .browser: break
    }
    if case .one(let only) = request.targets {
      switch (way, only) {
      case (.fcm, .fcm(let address)) where FCMAddress(address) != .token || target != nil: return Array(address)
      case (.phonesOfAPNs, .apns(let token)) where target != nil: return Array(token)
      default: break
      }
    }
    return Array("<token>".utf8)
  }

  private func apnsView(_ admitted: Rehearsal.Admitted, _ way: Explanation.Way) -> Explanation.View {
    let request = admitted.request
    var report: LossReport? = LossReport()
    let outcome = Result { () throws(Rejection) in
      let template = try admitted.apns(toChannels: way == .channelsOfAPNs, &report)
      let push = template.stamp(token: address(request, way)[...])
      let target =
        template.isBroadcast ? ("apns-channel-id", text(Array(push.channel))) : ("apns-topic", topic(push.topic, request))
      var headers: [Explanation.Header] = [
        (target.0, target.1, nil), ("apns-push-type", text(push.pushType), nil), ("apns-priority", "\(push.priority)", nil),
        ("apns-expiration", "\(push.expiration)", push.expiration == 0 ? "now or never" : utc(push.expiration)),
      ]
      if let id = push.collapseID { headers.append(("apns-collapse-id", text(id), nil)) }
      if let id = template.fixedID ?? identity(request, template) {
        headers.append((template.isBroadcast ? "apns-request-id" : "apns-id", text(id), nil))
      }
      return Explanation.Sending(
        path: template.isBroadcast
          ? "/4/broadcasts/apps/\(topic(push.topic, request))" : "/3/device/\(text(Array(push.token)))",
        headers: headers, payload: push.payload, bytes: push.payload.count, limit: template.payloadLimit,
        counted: "the payload", losses: report ?? LossReport())
    }
    return .init(way: way, hasCredential: admitted.hasAPNs, outcome: outcome)
  }

  /// The `apns-id` of a push to a single APNs token, if the message id is known.
  private func identity(_ request: SendRequest, _ template: APNsTemplate) -> [UInt8]? {
    guard messageID != nil, case .one(.apns(let token)) = request.targets else { return nil }
    return template.stamp(token: token).id
  }

  private func fcmView(_ admitted: Rehearsal.Admitted, _ way: Explanation.Way) -> Explanation.View {
    let request = admitted.request
    var report: LossReport? = LossReport()
    let outcome = Result { () throws(Rejection) in
      let template = try admitted.fcm(toTopics: way == .topicsOfFCM, &report)
      return Explanation.Sending(
        path: "/v1/projects/<project>/messages:send", headers: [("content-type", "application/json", nil)],
        payload: template.body(token: address(request, way)[...]), bytes: template.countedBytes(of: request),
        limit: FCMTemplate.payloadLimit(toTopics: way == .topicsOfFCM), counted: "notification and data",
        losses: report ?? LossReport())
    }
    return .init(way: way, hasCredential: admitted.hasFCM, outcome: outcome)
  }

  private func browserView(_ admitted: Rehearsal.Admitted) -> Explanation.View {
    var report: LossReport? = LossReport()
    let outcome = Result { () throws(Rejection) in
      let template = try admitted.webpush(&report)
      let lifetime = template.timeToLive(at: now)
      var headers: [Explanation.Header] = [
        ("ttl", "\(lifetime)", lifetime == 0 ? "now or never" : nil), ("urgency", text(template.urgency), nil),
        ("content-encoding", "aes128gcm", nil),
      ]
      if let topic = template.topic { headers.append(("topic", text(topic), nil)) }
      let payload = template.payload(token: [])
      return Explanation.Sending(
        path: "<path of the endpoint>", headers: headers, payload: payload, bytes: payload.count,
        limit: WebPushTemplate.payloadLimit, counted: "the payload", losses: report ?? LossReport())
    }
    return .init(way: .browser, hasCredential: admitted.hasWebPush, outcome: outcome)
  }

  private static let placeholder = "bundle.id"

  private func topic(_ topic: [UInt8], _ request: SendRequest) -> String {
    guard configuration == nil, app == nil, request.apnsHeader(.apnsTopic) == nil else { return text(topic) }
    return "<bundle ID>" + text(topic).dropFirst(Self.placeholder.count)
  }

  private func utc(_ seconds: Int64) -> String { text(Timestamp.text(seconds &* 1000)) }
}

private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

struct Explanation {
  typealias Header = (name: String, value: String, note: String?)

  struct Sending {
    var path: String
    var headers: [Header]
    var payload: [UInt8]
    /// Bytes that the provider counts against `limit`; `counted` names what is counted.
    var bytes: Int
    var limit: Int
    var counted: String
    var losses: LossReport
  }

  enum Way: CaseIterable {
    case phonesOfAPNs, channelsOfAPNs, fcm, topicsOfFCM, browser

    var platform: Platform {
      switch self {
      case .phonesOfAPNs, .channelsOfAPNs: .apns
      case .fcm, .topicsOfFCM: .fcm
      case .browser: .webpush
      }
    }
    var isToDevices: Bool { self == .phonesOfAPNs || self == .fcm || self == .browser }
    var words: String {
      switch self {
      case .phonesOfAPNs: "iPhone, through APNs"
      case .channelsOfAPNs: "Broadcast channel of APNs"
      case .fcm: "Android phone, through FCM v1"
      case .topicsOfFCM: "Topic that FCM keeps"
      case .browser: "Browser, through web push"
      }
    }
  }

  struct View {
    let way: Way
    let hasCredential: Bool
    let outcome: Result<Sending, Rejection>
    var rejection: Rejection? { if case .failure(let rejection) = outcome { rejection } else { nil } }
  }

  /// Unix milliseconds.
  var now: Int64
  var published: Int64
  var rejection: Rejection?
  var hint: String?
  /// The text that positions in reasons refer to; empty if the request was changed before parsing.
  var source: [UInt8] = []
  var request: SendRequest?
  var views: [View] = []

  /// The ways that the request's own targets name.
  var namedWays: [Way] { request.map { $0.targets.named.compactMap(\.way) } ?? [] }

  /// The first code with which the request or one of its views is refused. `NothingForPlatform` counts only if it applies to
  /// all views. A platform without credential counts only if the request names it.
  var refusal: PushError? {
    if let rejection { return rejection.code }
    let named = namedWays
    let served = views.filter { $0.hasCredential || named.contains($0.way) }
    let views = served.isEmpty ? views : served
    let codes = views.compactMap(\.rejection?.code)
    return codes.first { $0 != .nothingForPlatform } ?? (codes.count == views.count ? codes.first : nil)
  }

  // MARK: JSON

  /// `{"platform":"apns","path":…,"headers":{…},"payload":{…},"bytes":181,"limit":4096,"losses":[…]}`, or
  /// `{"platform":…,"error":"MessageTooBig","reason":…}`, with `hint` if there is one.
  var jsonLines: [[UInt8]] {
    if let rejection { return [json(rejection).line] }
    return views.map { view in
      let platform: JSONObject = ["platform": view.way.platform.word]
      return switch view.outcome {
      case .failure(let rejection): (platform + json(rejection)).line
      case .success(let sending): (platform + Self.json(sending)).line
      }
    }
  }

  /// The explanation of a request that comes to the gateway now.
  static func explain(_ configuration: Configuration, _ app: String, _ body: [UInt8]) -> (isRefused: Bool, json: [UInt8]) {
    let question = ExplainQuestion(
      body: body, coversBothProviders: false, configuration: configuration, app: app, now: RegistrySession.now)
    let explanation = question.answer()
    let lines = explanation.jsonLines
    guard explanation.rejection == nil else { return (true, lines.first ?? []) }
    return (false, JSONObjectWriter.array(lines))
  }

  private func json(_ rejection: Rejection) -> JSONObject {
    ["error": rejection.code.rawValue, "reason": rejection.reason, "hint": JSONOptional(hint)]
  }

  private static func json(_ sending: Sending) -> JSONObject {
    [
      "path": sending.path, "headers": JSONObject(sending.headers.map { ($0.name, $0.value) }),
      "payload": JSONRaw(sending.payload), "bytes": sending.bytes, "limit": sending.limit,
      "losses": JSONRaw(sending.losses.json),
    ]
  }
}

extension Target {
  /// The way of a provider's own address; nil for targets in the registry.
  var way: Explanation.Way? {
    switch self {
    case .apns: .phonesOfAPNs
    case .channel: .channelsOfAPNs
    case .fcm: .fcm
    case .fcmTopics: .topicsOfFCM
    case .webpush: .browser
    case .topic, .all, .user, .group, .registration, .invalid: nil
    }
  }
}
