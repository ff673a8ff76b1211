import DeviceRegistry
import PushCore
import StatusHTTP
import Wire

/// `/v1/apps/<app>/installations/<id>` and its subpaths: devices or their backends register installations and set user, groups
/// and topics.
enum Installations {
  // MARK: GET, PUT and DELETE of the installation

  /// Devices don't get their tokens: they have them anyway, and the secret may be stolen.
  static func get(_ call: HTTPCall) {
    devices(call) { records in
      call.ask(.read { [app = call.app, id = call.installation] in try $0.badge(ofInstallation: id, app: app) }) { badge in
        call.answer(
          .json(
            200,
            [
              "installation": call.installation, "user": records.lazy.compactMap(\.device.user).first,
              "name": records.lazy.compactMap(\.device.name).first, "badge": badge,
              "topics": Set(records.flatMap(\.device.topics)).sorted { $0.lexicographicallyPrecedes($1) },
              "registrations": records.map { Self.description($0, withToken: call.isBackend) },
            ]))
      }
    }
  }

  private static func description(_ record: DeviceRecord, withToken: Bool) -> JSONObject {
    [
      "registration": record.registration, "platform": record.device.platform.word,
      "kind": (record.device.kind ?? .alert).name, "environment": record.device.environment?.name,
      "sender": record.device.sender, "state": "\(record.state)", "registered_at": Timestamp.text(record.registeredAt),
      "token": JSONOptional(withToken ? record.device.identity : nil),
    ]
  }

  static func put(_ call: HTTPCall) {
    guard let document = call.object(call.applications.limits.json) else { return }
    let names = ["user", "name"]
    if !maySayUser(call), names.contains(where: { document.value($0, of: document.root) != nil }) {
      return call.refuse(.notBackend)
    }
    var members: [(String, any JSONMember)] = []
    for (name, value) in document.members(of: document.root) {
      let word = document.text(name)
      guard !["op", "app", "installation"].contains(word) else {
        return call.refuse("InvalidParameters", "\(word): is given by the path")
      }
      members.append((word, JSONRaw(document.raw(value))))
    }
    // Check the original body, so that the reason refers to positions that the caller knows.
    if case .failure(let refusal) = RegistryChange.parse(
      call.request.body, defaultApp: call.app, limits: call.parts.changes.limits)
    {
      return call.refuse(refusal.code.rawValue, refusal.reason)
    }
    // A UPMC user needs a name. The check above refuses a name without a user; a phone without a logged-in user has neither.
    if call.applications[call.app]?.isUPMC == true, document.string("user") != nil, document.string("name") == nil {
      return call.refuse("InvalidParameters", "name: missing")
    }
    let register = (call.message("register") + JSONObject(members)).line
    guard !call.isBackend else { return self.register(call, register) }
    // A device that knows another device's token must not get its pushes or take the token away.
    guard case .success(.register(let registration)) = RegistryChange.parse(register, limits: call.parts.changes.limits) else {
      return self.register(call, register)
    }
    let holder = DeviceReference.token(registration.platform, registration.token)
    call.ask(.read { [app = call.app] in try $0.device(holder, app: app) }) { records in
      let holders = records.filter { $0.state != .gone }
      guard holders.allSatisfy({ $0.device.installation == call.installation }) else {
        return call.refuse("NotAllowed", "token: another device has it", status: 409)
      }
      self.register(call, register)
    }
  }

  private static func maySayUser(_ call: HTTPCall) -> Bool { call.isBackend || call.parts.http.deviceUsers }

  private static func register(_ call: HTTPCall, _ line: [UInt8]) {
    change(call, line) { answer in
      guard let registration = answer.string("registration") else { return call.answer(.json(200, [:])) }
      guard call.isBackend else { return call.answer(.json(200, ["registration": registration])) }
      giveSecret(call, replacing: false) { secret in
        call.answer(.json(200, ["registration": registration, "secret": JSONOptional(secret)]))
      }
    }
  }

  /// A backend's request also removes the secret: the device loses its access, and a later registration gets a new secret.
  static func delete(_ call: HTTPCall) {
    guard call.isBackend else { return applied(call, call.message("unregister")) }
    let removal = RegistryCall.write(.devices) { [app = call.app, id = call.installation] store, _ in
      try store.removeSecret(ofInstallation: id, app: app)
    }
    call.ask(removal, orElse: Self.unwritten) { _ in
      applied(call, call.message("unregister"))
    }
  }

  private static let unwritten = "the registry can't be written to for now"

  /// Replaces the secret of a device that has lost it.
  static func renewSecret(_ call: HTTPCall) {
    guard call.isBackend else { return call.refuse(.notBackend) }
    devices(call) { _ in
      giveSecret(call, replacing: true) { secret in
        call.answer(.json(200, ["secret": JSONOptional(secret)]))
      }
    }
  }

  /// - Parameter then: gets nil if the device already has a secret. If the registry can't be written to, answers the call
  ///   instead.
  private static func giveSecret(_ call: HTTPCall, replacing: Bool, then: @escaping ([UInt8]?) -> Void) {
    let secret = NewSecret(.device)
    let hash = secret.hash
    let setting = RegistryCall.write(.devices) { [app = call.app, id = call.installation] in
      try $0.setSecret(hash, ofInstallation: id, app: app, replacing: replacing, now: $1)
    }
    call.ask(setting, orElse: Self.unwritten) { isSet in then(isSet ? secret.text : nil) }
  }

  // MARK: user

  static func putUser(_ call: HTTPCall) {
    guard maySayUser(call) else { return call.refuse(.notBackend) }
    guard let document = call.object(call.applications.limits.json) else { return }
    guard let user = document.string("user") else { return call.refuse("InvalidParameters", "user: missing") }
    let name = document.string("name")
    if call.applications[call.app]?.isUPMC == true, name == nil {
      return call.refuse("InvalidParameters", "name: missing")
    }
    bindAll(call, user, name, looks: Self.looks)
  }

  /// How often the registrations are read again while tokens are changing.
  private static let looks = 5

  private static func bindAll(_ call: HTTPCall, _ user: [UInt8], _ name: [UInt8]?, looks: Int) {
    guard looks > 0 else { return call.refuse(.unavailable("the installation's token keeps changing")) }
    devices(call) { records in
      bind(call, user, name, records[...]) { bindAll(call, user, name, looks: looks - 1) }
    }
  }

  /// Sets the user of one registration after the other. An installation has one registration for each sender and kind of token.
  /// A change that isn't applied yet is an error: the installation may get another token before, which would have no user.
  /// - Parameter again: called if a registration has another token by now, whose user isn't set.
  private static func bind(
    _ call: HTTPCall, _ user: [UInt8], _ name: [UInt8]?, _ records: ArraySlice<DeviceRecord>,
    again: @escaping () -> Void
  ) {
    guard let record = records.first else { return call.answer(.json(200, [:])) }
    let device = record.device
    let subscription = device.subscription.map { JSONRaw($0.json) }
    let message =
      call.message("register")
      + [
        "platform": device.platform.word, "subscription": JSONOptional(subscription),
        "token": JSONOptional(subscription == nil ? device.token : nil), "sender": JSONOptional(device.sender),
        "kind": JSONOptional(device.kind?.name), "activity": JSONOptional(device.activity.flatMap { $0.isEmpty ? nil : $0 }),
        // Keep the time: a new user doesn't make the token newer.
        "registered_at": Timestamp.text(record.registeredAt), "user": user, "name": JSONOptional(name),
      ]
    let isLate = ErrorFormat.own.answer(.unavailable("no worker has bound the user yet: say it again"))
    change(call, message.line, late: isLate) { answer in
      guard answer.string("registration") == record.registration else { return again() }
      bind(call, user, name, records.dropFirst(), again: again)
    }
  }

  static func deleteUser(_ call: HTTPCall) {
    guard maySayUser(call) else { return call.refuse(.notBackend) }
    applied(call, call.message("unregister_user"))
  }

  // MARK: groups and topics

  /// Groups belong to the user, so only those who may set the user may change them.
  static func group(_ call: HTTPCall) {
    guard maySayUser(call) else { return call.refuse(.notBackend) }
    let operation = call.request.method == "PUT" ? "group_join" : "group_leave"
    applied(call, call.message(operation) + ["group": call.path[6]])
  }

  static func topic(_ call: HTTPCall) {
    devices(call) { records in
      let op = call.request.method == "PUT" ? "subscribe" : "unsubscribe"
      let line = JSONObject.topicChange(op, call.app, call.path[6], tokens: records.map(\.registration)).line
      change(call, line) { answer in
        if let error = answer.resultErrors?.compactMap(\.self).first {
          return call.refuse(error, "the topic was not joined or left")
        }
        call.answer(.json(200, [:]))
      }
    }
  }

  // MARK: steps

  /// The installation's registrations. If there are none, answers the call with an error instead.
  private static func devices(_ call: HTTPCall, then: @escaping ([DeviceRecord]) -> Void) {
    call.ask(.read { [app = call.app, id = call.installation] in try $0.device(.installation(id), app: app) }) { records in
      let present = records.filter { $0.state != .gone }
      guard !present.isEmpty else { return call.refuse("NotRegistered", "the installation is not registered", status: 404) }
      then(present)
    }
  }

  /// Makes a change whose answer has no content.
  private static func applied(_ call: HTTPCall, _ message: JSONObject) {
    change(call, message.line) { _ in call.answer(.json(200, [:])) }
  }

  /// - Parameters:
  ///   - late: the answer if the change is accepted but not applied yet.
  ///   - then: gets the answer to an applied change.
  private static func change(
    _ call: HTTPCall, _ change: [UInt8], late: HTTPAnswer = .json(202, [:]), then: @escaping (JSONDocument) -> Void
  ) {
    if case .failure(let refusal) = RegistryChange.parse(change, limits: call.parts.changes.limits) {
      return call.refuse(refusal.code.rawValue, refusal.reason)
    }
    call.parts.changes.change(change, app: call.app, for: call, late: late) { answer in
      guard let error = answer.string("error") else { return then(answer) }
      let word = String(decoding: error, as: UTF8.self)
      let reason = answer.string("reason").map { String(decoding: $0, as: UTF8.self) } ?? ""
      call.refuse(word, reason, status: Self.status(of: word))
    }
  }

  private static func status(of error: String) -> Int {
    switch ChangeError(rawValue: error) {
    case .groupNotFound, .notificationKeyNotFound, .notRegistered: 404
    case .noUser, .notificationKeyExists, .nameMismatch: 409
    case .notAllowed: 403
    default: 400
    }
  }
}
