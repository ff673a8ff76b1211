import AMQP
import DeviceRegistry
import PushCore
import Wire

/// The backends' part of a run: registered devices, requests, and changes of the registry.
final class Workload {
  private let scenario: Scenario
  private let world: World
  private let producer: Producer
  private let recorder: OutcomeRecorder
  /// For each application: topic, users and group as named in requests, with the tokens of their devices.
  private var audiences: [[(to: String, members: [String])]] = []
  private var random: RandomSource

  init(_ scenario: Scenario, _ producer: Producer, _ recorder: OutcomeRecorder, _ store: DeviceStore, in world: World)
    throws
  {
    self.scenario = scenario
    self.producer = producer
    self.recorder = recorder
    self.world = world
    random = world.fork()
    for app in 0..<scenario.apps { audiences.append(try register(app, store)) }
    try registerJoining(store)
  }

  // MARK: devices

  private static let users = 4
  private static let groupSize = 6

  private func register(_ app: Int, _ store: DeviceStore) throws -> [(to: String, members: [String])] {
    guard scenario.devices > 0 else { return [] }
    var changes: [RegistryChange] = []
    var all = (to: "/topics/all", members: [String]())
    var users = (0..<Self.users).map { (to: "/users/u-\($0)", members: [String]()) }
    var references: [DeviceReference] = []
    for device in 0..<scenario.devices {
      let platform: Platform = device % 3 == 0 ? .fcm : device % 3 == 1 && scenario.hasBrowsers(app) ? .webpush : .apns
      let token = Self.token(platform, app: app, number: 1_000 + device, at: scenario.services)
      var registration = Registration(app: Array(Scenario.app(app).utf8), platform: platform, token: Self.stored(token))
      registration.topics = [Array("all".utf8)]
      registration.user = Array("u-\(device % Self.users)".utf8)
      changes.append(.register(registration))
      all.members.append(token)
      users[device % Self.users].members.append(token)
      if references.count < Self.groupSize { references.append(.token(platform, Array(token.utf8))) }
    }
    changes.append(.groupCreate(app: Array(Scenario.app(app).utf8), name: Array("group".utf8), .devices(references)))
    var audiences = [all] + users.filter { !$0.members.isEmpty }
    let answers = try store.apply(changes, now: world.wallClock)
    for (answer, token) in zip(answers, all.members) {
      if case .registration(let id) = answer { recorder.registered(String(decoding: id, as: UTF8.self), token) }
    }
    if case .notificationKey(let key, _)? = answers.last {
      audiences.append((String(decoding: key, as: UTF8.self), Array(all.members.prefix(Self.groupSize))))
    }
    return audiences
  }

  /// - Parameter services: those of browsers, for web push.
  static func token(_ platform: Platform, app: Int, number: Int, at services: [PushService]) -> String {
    let digits = String(app * 100_000 + number)
    switch platform {
    case .apns: return String(repeating: "0", count: 64 - digits.count) + digits
    case .fcm: return "device-\(digits):" + String(repeating: "A", count: 60)
    case .webpush: return services[number % services.count].endpoint(digits)
    }
  }

  static func platform(of token: String) -> Platform {
    token.hasPrefix("https:") ? .webpush : token.hasPrefix("device-") ? .fcm : .apns
  }

  /// The device as the target of a request.
  static func target(_ token: String) -> String {
    platform(of: token) == .webpush ? PushService.target(token) : named(token)
  }

  /// The device with its platform.
  private static func named(_ token: String) -> String { "\(platform(of: token).word):\(token)" }

  /// The device in changes of the registry and in acknowledgements.
  static func reference(_ token: String) -> String { platform(of: token) == .webpush ? token : named(token) }

  /// The token in the registry.
  private static func stored(_ token: String) -> [UInt8] {
    guard case .success(.webpush(let stored)) = Target.classify(Array(target(token).utf8)) else { return Array(token.utf8) }
    return Array(stored)
  }

  static func shown(_ stored: [UInt8], _ platform: Platform) -> String {
    String(decoding: platform.identity(of: stored[...]), as: UTF8.self)
  }

  /// True for a registered device, which audiences contain.
  static func isRegistered(_ token: String) -> Bool { (1_000..<5_000).contains(number(of: token) % 100_000) }

  /// Devices whose pushes have a type whose topic no credential has.
  private static let withoutTopic = 60_000..<90_000
  static func lacksTopic(_ token: String) -> Bool { withoutTopic.contains(number(of: token) % 100_000) }

  static func app(of token: String) -> Int { number(of: token) / 100_000 }

  private static func number(of token: String) -> Int {
    switch platform(of: token) {
    case .apns: Int(token) ?? 0
    case .fcm: Int(token.dropFirst(7).prefix { $0 != ":" }) ?? 0
    case .webpush: token.split { !$0.isNumber }.last.flatMap { Int($0) } ?? 0
    }
  }

  // MARK: requests

  func plan() {
    for number in 0..<scenario.requests { planRequest(number) }
    for number in 0..<scenario.broadcasts { planBroadcast(scenario.requests + number) }
    for number in 0..<scenario.changes { planChange(number) }
    for number in 0..<scenario.newerPages { planNewerPage(number) }
  }

  /// Seconds within which simultaneous publications come.
  private static let burst = 0.1

  private func makeRequest(_ number: Int, _ app: Int, _ audience: Request.Audience) -> Request {
    Request(
      number: number, app: app, audience: audience,
      lifetime: [nil, nil, nil, 60, 600, 0][Int.random(in: 0...5, using: &random)],
      lane: random.next() % 4 == 0 ? "high" : "normal", publishedAt: 0, messageID: "r-\(number)")
  }

  private func planRequest(_ number: Int) {
    var app = Int.random(in: 0..<scenario.apps, using: &random)
    if let loud = scenario.loud, random.next() % 3 != 0 { app = loud }
    var audience: Request.Audience
    if random.next() % 8 == 0, audiences[app].count > 1 {
      let place = Int.random(in: 1..<audiences[app].count, using: &random)
      audience = .registered(to: audiences[app][place].to, members: audiences[app][place].members)
    } else {
      let count = random.next() % 5 == 0 ? Int.random(in: 2...8, using: &random) : 1
      audience = .tokens(
        (0..<count).map { place in
          Self.named(
            Self.token(platform(of: app), app: app, number: 10_000 + number * 10 + place, at: scenario.services))
        })
    }
    var request = makeRequest(number, app, audience)
    if case .registered = audience { request.countsBadge = number.isMultiple(of: 2) }
    collapse(&request)
    if number % 8 == 5, case .tokens = audience {
      request.audience = .tokens([
        Self.named(Self.token(.apns, app: app, number: Self.withoutTopic.lowerBound + number, at: []))
      ])
      request.lacksTopic = true
    }
    switch random.next() % 16 {
    case 0: request.sender = .unknown
    case 1...4 where Scenario.has(.other, app: app): request.sender = .other
    default: break
    }
    request.wantsReply = random.next() % 4 == 0
    if random.next() % 8 == 0 { request.forged = forgery() }
    schedule(request)
  }

  private func platform(of app: Int) -> Platform {
    switch random.next() % 4 {
    case 0: .fcm
    case 1 where scenario.hasBrowsers(app), 2 where scenario.hasBrowsers(app): .webpush
    default: .apns
    }
  }

  /// Every fourth request to one device has a collapse key, which other requests to the device share.
  private func collapse(_ request: inout Request) {
    guard request.number.isMultiple(of: 4), case .tokens(let tokens) = request.audience, tokens.count == 1 else { return }
    let platform = Self.platform(of: FinalAudit.own(tokens[0]))
    let own = Self.token(platform, app: request.app, number: 9_990 + request.number % 3, at: scenario.services)
    request.audience = .tokens([Self.named(own)])
    request.collapseKey = "key-\(request.number % 2)"
  }

  /// One of several requests with a collapse key to the same audience.
  private func collapseBroadcast(_ request: inout Request) {
    request.collapseKey = "all"
    for copy in 1...Self.newerBroadcasts {
      var other = request
      other.number += copy * 20_000
      other.messageID = "r-\(other.number)"
      schedule(other)
    }
  }

  private static let newerBroadcasts = 3

  /// Sometimes sends the same broadcast to two applications.
  private func planBroadcast(_ number: Int) {
    let app = Int.random(in: 0..<scenario.apps, using: &random)
    guard let all = audiences[app].first else { return }
    var request = makeRequest(number, app, .registered(to: all.to, members: all.members))
    request.countsBadge = number.isMultiple(of: 2)
    request.wantsReply = random.next() % 4 == 0
    let isForTwo = random.next() % 2 == 0
    if scenario.requests.isMultiple(of: 2) { collapseBroadcast(&request) }
    let time = schedule(request)
    guard isForTwo, scenario.apps > 1 else { return }
    request.app = (app + 1) % scenario.apps
    request.number += 10_000
    if let all = audiences[request.app].first { request.audience = .registered(to: all.to, members: all.members) }
    schedule(request, at: time)
  }

  @discardableResult
  private func schedule(_ request: Request, at given: Double? = nil) -> Double {
    let own = request.app == scenario.loud ? scenario.surge : nil
    let time = given ?? own ?? scenario.moment(after: 0, within: Self.burst, &random)
    world.schedule(after: time) { [self] in
      var request = request
      request.publishedAt = world.wallClock / 1000 * 1000
      var outgoing = request.outgoing
      outgoing.isAccepted = { [recorder] in recorder.accepted(request) }
      producer.publish(outgoing)
    }
    return time
  }

  /// Headers as if a worker, of this or a later version, had handled the request.
  private func forgery() -> FieldTable {
    var headers: FieldTable = [
      "x-push-origin": .text("fanout.normal"), "x-push-quarantine-losses": .integer(3),
      "x-push-retry-attempts": .integer(99), "x-push-retry-deadline": .integer(1), "x-push-producer": .text("another"),
    ]
    if random.next() % 2 == 0 { headers.append("x-push-page", .string([UInt8(random.next() % 2 == 0 ? 2 : 9), 1, 2, 3])) }
    return headers
  }

  // MARK: other versions

  /// A page in the format of a later version. It must wait for a worker of that version for any time.
  private func planNewerPage(_ number: Int) {
    var properties = BasicProperties()
    properties.deliveryMode = 2
    properties.appID = Array(Scenario.app(0).utf8)
    properties.messageID = Array("newer-\(number)".utf8)
    properties.headers = ["x-push-page": .string([9, 1, 2, 3]), "x-push-origin": .text("fanout.normal")]
    var outgoing = Outgoing(
      exchange: "push.fanout", routingKey: "normal", properties: properties, body: #"{"to":"/topics/all","data":{"k":"v"}}"#)
    outgoing.isAccepted = { [recorder] in recorder.keep("\(Scenario.app(0))/newer-\(number)") }
    world.schedule(after: scenario.moment(after: 0, within: Self.burst, &random)) { [self] in producer.publish(outgoing) }
  }

  // MARK: changes of the registry

  /// Devices that join and leave a topic, devices that register and unregister, and installations whose token changes. No
  /// device does two of these, because a change refused at first may be accepted after a redelivery.
  private static let (joining, coming, moving) = (3, 3, 2)
  private static let tokensOfMoving = 3

  private func registerJoining(_ store: DeviceStore) throws {
    let changes = (0..<Self.joining).map { place in
      let order = RegistryOrder(number: -1, app: 0, device: place, operation: .register, services: scenario.services)
      return RegistryChange.register(
        Registration(app: Array(Scenario.app(0).utf8), platform: order.platform, token: Self.stored(order.token)))
    }
    _ = try store.apply(changes, now: world.wallClock)
  }

  private func planChange(_ number: Int) {
    let device = Int.random(in: 0..<Self.joining + Self.coming + Self.moving, using: &random)
    let isOn = random.next() % 2 == 0
    let operation: RegistryOrder.Operation =
      device < Self.joining
      ? (isOn ? .subscribe : .unsubscribe)
      : device < Self.joining + Self.coming ? (isOn ? .register : .unregister) : .move
    let order = RegistryOrder(
      number: number, app: 0, device: device, operation: operation, variant: number % Self.tokensOfMoving,
      services: scenario.services)
    recorder.expect(order)
    world.schedule(after: scenario.moment(after: 0, within: Self.burst, &random)) { [self] in
      var outgoing = order.outgoing
      outgoing.isAccepted = { [recorder] in recorder.accepted(order) }
      producer.publish(outgoing)
    }
  }
}
