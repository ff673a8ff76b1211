import Delivery
import PushCore

/// A request to be explained, as it is sent at one moment.
struct ExplainQuestion {
  var body: [UInt8]
  /// Replaces the request's own.
  var target: [UInt8]?
  var app: ExplainedApp
  /// As the headers `x-push-sender` and `x-push-environment` name them.
  var sender: String?
  var environment: String?
  var messageID: String?
  /// Unix milliseconds; nil: just now.
  var published: Int64?
  /// Unix milliseconds: when it is sent.
  var now: Int64

  func answer() -> Explanation {
    var explanation = explain()
    if explanation.refusal == .messageTooBig { explanation.hint = hintOfPages() }
    if explanation.refusal == .invalidJSON, hasSeveralRequests {
      explanation.hint =
        "The file holds several requests, one a line: one at a time is explained, as `head -n 1 FILE | pushfleet explain -` does"
    }
    return explanation
  }

  /// Whether the first two lines are each a whole document.
  private var hasSeveralRequests: Bool {
    let lines = body.split(separator: 0x0A, maxSplits: 2).prefix(2)
    return lines.count == 2 && lines.allSatisfy { (try? JSONDocument(Array($0), limits: app.limits)) != nil }
  }

  private func explain() -> Explanation {
    let explained =
      target.flatMap { target in (try? JSONDocument(body, limits: app.limits)).map { DeadLetter.body($0, naming: target) } }
      ?? body
    let rehearsal =
      app.configuration.map { Rehearsal($0) }
      ?? Rehearsal(topic: app.topic ?? Self.placeholder, package: ExplainedApp.package(in: explained, app.limits))
    let admitted: Rehearsal.Admitted
    switch rehearsal.admit(question(explained)) {
    case .success(let made): admitted = made
    case .failure(let rejection):
      return Explanation(now: now, published: published ?? now, rejection: asWritten(rejection, rehearsal), source: body)
    }
    let views = ways(admitted.request).map { way in way.platform == .apns ? apnsView(admitted, way) : fcmView(admitted, way) }
    return Explanation(
      now: now, published: published ?? now, source: target == nil ? body : [], request: admitted.request, views: views)
  }

  /// Of a request that a page would make room in.
  private func hintOfPages() -> String? {
    var limits = RequestLimits()
    limits.ignoresUnknownNames = true
    limits.extensionBytes = .max
    guard let request = try? SendRequest.parse(body, limits: limits).get(), request.hasExtension else { return nil }
    let package = request.restrictedPackageName.map { String(decoding: $0, as: UTF8.self) }
    let apps = app.configuration?.apps ?? []
    let explained =
      apps.count == 1 ? apps[0] : apps.first { app.id == $0.id || app.id == nil && package.map($0.packages.contains) == true }
    return explained.flatMap { app.configuration?.hintOfPages($0) }
  }

  private func question(_ body: [UInt8]) -> Rehearsal.Question {
    Rehearsal.Question(
      body: body, app: app.id, sender: sender, environment: environment, messageID: messageID,
      published: published ?? now, now: now)
  }

  /// The place in the file, not in the request whose target was replaced.
  private func asWritten(_ rejection: Rejection, _ rehearsal: Rehearsal) -> Rejection {
    if target != nil, case .failure(let original) = rehearsal.admit(question(body)), original.code == rejection.code {
      return original
    }
    return rejection
  }

  private func ways(_ request: SendRequest) -> [Explanation.Way] {
    let named = request.targets.named
    return Explanation.Way.allCases.filter { way in named.isEmpty ? way.isToDevices : named.contains { goes($0, way) } }
  }

  /// A token stands for those of the other provider as well, unless it was asked about alone.
  private func goes(_ target: Target, _ way: Explanation.Way) -> Bool {
    switch target {
    case .channel, .fcmTopics: target.way == way
    case .apns, .fcm: self.target == nil ? way.isToDevices : target.way == way
    default: way.isToDevices
    }
  }

  /// What stands in the place of the device: the request's own address where it is the only one and says more than that it is a token, the
  /// one that was asked about, and the first channel or topic of a list.
  private func address(_ request: SendRequest, _ way: Explanation.Way) -> [UInt8] {
    let named = request.targets.named
    switch way {
    case .channelsOfAPNs: for case .channel(let id) in named { return id }
    case .topicsOfFCM: for case .fcmTopics(let address) in named { return address }
    case .phonesOfAPNs, .fcm: break
    }
    if case .one(let only) = request.targets {
      switch (way, only) {
      case (.fcm, .fcm(let address)) where FCMAddress(address[...]) != .token || target != nil: return address
      case (.phonesOfAPNs, .apns(let token)) where target != nil: return token
      default: break
      }
    }
    return Array("<token>".utf8)
  }

  private func apnsView(_ admitted: Rehearsal.Admitted, _ way: Explanation.Way) -> Explanation.View {
    guard admitted.hasAPNs else { return .init(way: way, hasCredential: false, outcome: .failure(.noAPNsCredential)) }
    let request = admitted.request
    var report: LossReport? = LossReport()
    let outcome = admitted.apns(toChannels: way == .channelsOfAPNs, &report).map { template in
      let push = template.stamp(token: address(request, way)[...])
      let target =
        template.isBroadcast ? ("apns-channel-id", text(Array(push.channel))) : ("apns-topic", topic(push.topic, request))
      var headers: [Explanation.Header] = [
        .init(target.0, target.1), .init("apns-push-type", text(push.pushType)),
        .init("apns-priority", "\(push.priority)"),
        .init("apns-expiration", "\(push.expiration)", note: push.expiration == 0 ? "now or never" : utc(push.expiration)),
      ]
      if let id = push.collapseID { headers.append(.init("apns-collapse-id", text(id))) }
      if let id = template.fixedID ?? identity(request, template) {
        headers.append(.init(template.isBroadcast ? "apns-request-id" : "apns-id", text(id)))
      }
      return Explanation.Sending(
        path: template.isBroadcast
          ? "/4/broadcasts/apps/\(topic(push.topic, request))" : "/3/device/\(text(Array(push.token)))",
        headers: headers, payload: push.payload, bytes: push.payload.count, limit: template.payloadLimit,
        counted: "the payload", losses: report ?? LossReport())
    }
    return .init(way: way, outcome: outcome)
  }

  /// The `apns-id` of a push to the one token that is named, where the message id is known.
  private func identity(_ request: SendRequest, _ template: APNsTemplate) -> [UInt8]? {
    guard messageID != nil, case .one(.apns(let token)) = request.targets else { return nil }
    return template.stamp(token: token[...]).id
  }

  private func fcmView(_ admitted: Rehearsal.Admitted, _ way: Explanation.Way) -> Explanation.View {
    guard admitted.hasFCM else { return .init(way: way, hasCredential: false, outcome: .failure(admitted.withoutFCM)) }
    let request = admitted.request
    var report: LossReport? = LossReport()
    let outcome = admitted.fcm(toTopics: way == .topicsOfFCM, &report).map { template in
      Explanation.Sending(
        path: "/v1/projects/<project>/messages:send", headers: [.init("content-type", "application/json")],
        payload: template.body(token: address(request, way)[...]), bytes: template.countedBytes(of: request),
        limit: FCMTemplate.payloadLimit(toTopics: way == .topicsOfFCM), counted: "notification and data",
        losses: report ?? LossReport())
    }
    return .init(way: way, outcome: outcome)
  }

  private static let placeholder = "bundle.id"

  private func topic(_ topic: [UInt8], _ request: SendRequest) -> String {
    guard app.configuration == nil, app.topic == nil, request.apnsHeader(.apnsTopic) == nil else { return text(topic) }
    return "<bundle ID>" + text(topic).dropFirst(Self.placeholder.count)
  }

  private func utc(_ seconds: Int64) -> String { text(Timestamp.text(seconds &* 1000)) }
}

private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

/// What a request becomes, or why it is refused.
struct Explanation {
  struct Header {
    var name: String
    var value: String
    /// As printed.
    var note: String?

    init(_ name: String, _ value: String, note: String? = nil) { (self.name, self.value, self.note) = (name, value, note) }
  }

  /// What goes to a provider for each device.
  struct Sending {
    var path: String
    var headers: [Header]
    var payload: [UInt8]
    /// What the provider counts against `limit`, of what `counted` says.
    var bytes: Int
    var limit: Int
    var counted: String
    var losses: LossReport
  }

  /// By which provider, and to what.
  enum Way: CaseIterable {
    case phonesOfAPNs, channelsOfAPNs, fcm, topicsOfFCM

    var platform: Platform { self == .fcm || self == .topicsOfFCM ? .fcm : .apns }
    var isToDevices: Bool { self == .phonesOfAPNs || self == .fcm }
    /// As a heading.
    var words: String {
      switch self {
      case .phonesOfAPNs: "iPhone, through APNs"
      case .channelsOfAPNs: "Broadcast channel of APNs"
      case .fcm: "Android phone, through FCM v1"
      case .topicsOfFCM: "Topic that FCM keeps"
      }
    }
  }

  struct View {
    let way: Way
    var hasCredential = true
    var outcome: Result<Sending, Rejection> = .failure(Rejection(.internalServerError, "not explained"))
  }

  /// Unix milliseconds.
  var now: Int64
  var published: Int64
  /// The whole request is refused.
  var rejection: Rejection?
  /// What would help against a refusal.
  var hint: String?
  /// What reasons point into; empty when the request was changed before it was read.
  var source: [UInt8] = []
  var request: SendRequest?
  var views: [View] = []

  /// The first code with which the request or one of its views is refused; a platform that it has nothing for is left out, unless it has
  /// nothing for any, and so is one that neither the application sends to nor the request names.
  var refusal: PushError? {
    if let rejection { return rejection.code }
    let named = request.map { $0.targets.named.compactMap(\.way) } ?? []
    let served = views.filter { $0.hasCredential || named.contains($0.way) }
    let views = served.isEmpty ? views : served
    let codes = views.compactMap { view in
      if case .failure(let rejection) = view.outcome { rejection.code } else { nil }
    }
    return codes.first { $0 != .nothingForPlatform } ?? (codes.count == views.count ? codes.first : nil)
  }
}

extension Target {
  /// How it is sent to where it is named as its provider does; nil for what the registry knows.
  var way: Explanation.Way? {
    switch self {
    case .apns: .phonesOfAPNs
    case .channel: .channelsOfAPNs
    case .fcm: .fcm
    case .fcmTopics: .topicsOfFCM
    case .topic, .all, .user, .group, .registration, .invalid: nil
    }
  }
}

extension Rejection {
  static var noAPNsCredential: Rejection { Rejection(.mismatchSenderID, "the application has no APNs credential") }
}
