import DeviceRegistry
import PushCore
import StatusHTTP
import TLS
import Wire

/// `/v1/apps/<app>/installations/<id>` and what is below it: devices register, and say who uses them and what they want, themselves or
/// by their backend.
struct Installations {
  let applications: GatewayApplications
  let changes: ChangeDesk
  let registry: RegistryClient
  /// A device may say who uses it; where it may not, its backend does.
  let takesUsersOfDevices: Bool

  // MARK: GET, PUT and DELETE of the installation

  /// What is known of it. A caller with its secret has its tokens anyway, or has found the secret.
  func get(_ call: HTTPCall, _ visitor: Visitor) {
    devices(call, visitor) { records in
      registry.call(.read { try $0.badge(ofInstallation: visitor.installation, app: visitor.app) }) { result in
        guard case .success(let badge) = result else { return refuseUnread(call) }
        call.answer(
          .json(200) { body in
            body.set("installation", visitor.installation)
            body.set("user", records.lazy.compactMap(\.device.user).first)
            body.set("name", records.lazy.compactMap(\.device.name).first)
            body.set("badge", badge)
            body.set("topics", Set(records.flatMap(\.device.topics)).sorted { $0.lexicographicallyPrecedes($1) })
            body.set(
              "registrations",
              objects: records.map { record in { Self.describe(record, withToken: visitor.isBackend, to: &$0) } })
          })
      }
    }
  }

  private static func describe(_ record: DeviceRecord, withToken: Bool, to object: inout JSONObjectWriter) {
    object.set("registration", record.registration)
    object.set("platform", record.device.platform == .apns ? "apns" : "fcm")
    object.set("kind", (record.device.kind ?? .alert).name)
    object.set("environment", record.device.environment?.name.map { Array($0.utf8) })
    object.set("sender", record.device.sender)
    object.set("state", "\(record.state)")
    object.set("registered_at", time: record.registeredAt)
    if withToken { object.set("token", record.device.token) }
  }

  func put(_ call: HTTPCall, _ visitor: Visitor) {
    guard let document = call.object(applications.limits.json) else { return }
    let names = ["user", "name"]
    if !maySayUser(visitor), names.contains(where: { document.value($0, of: document.root) != nil }) {
      return call.answer(Manner.own.answer(.notAllowed))
    }
    var line = visitor.message("register")
    for (name, value) in document.members(of: document.root) {
      let word = document.text(name)
      guard !["op", "app", "installation"].contains(word) else {
        return call.refuse("InvalidParameters", "\(word): stands in the path")
      }
      line.set(word, raw: document.raw(value))
    }
    // Of what the sender has said itself, whose places it knows.
    if case .failure(let refusal) = RegistryChange.parse(call.request.body, defaultApp: visitor.app, limits: changes.limits) {
      return call.refuse(refusal.code.rawValue, refusal.reason)
    }
    // A name without a user is refused anyway; neither is a phone that nobody is logged in on.
    if applications[visitor.app]?.isUPMC == true, document.text(of: "user") != nil, document.text(of: "name") == nil {
      return call.refuse("InvalidParameters", "name: missing")
    }
    let register = line.closed()
    guard !visitor.isBackend else { return self.register(call, visitor, register) }
    // Who knows another's token must not get what is meant for it, or have it taken from it.
    guard case .success(.register(let registration)) = RegistryChange.parse(register, limits: changes.limits) else {
      return self.register(call, visitor, register)
    }
    let holder = DeviceReference.token(registration.platform, registration.token)
    registry.call(.read { try $0.device(holder, app: visitor.app) }) { result in
      switch result {
      case .success(let records):
        let holders = records.filter { $0.state != .gone }
        guard holders.allSatisfy({ $0.device.installation == visitor.installation }) else {
          return call.refuse("NotAllowed", "token: another device has it", status: 409)
        }
        self.register(call, visitor, register)
      case .failure: refuseUnread(call)
      }
    }
  }

  private func maySayUser(_ visitor: Visitor) -> Bool { visitor.isBackend || takesUsersOfDevices }

  private func register(_ call: HTTPCall, _ visitor: Visitor, _ line: [UInt8]) {
    change(call, line, visitor.app) { answer in
      guard let registration = answer.text(of: "registration") else { return call.answer(.json(200) { _ in }) }
      guard visitor.isBackend else { return call.answer(.json(200) { $0.set("registration", registration) }) }
      giveSecret(call, visitor, replacing: false) { secret in
        call.answer(
          .json(200) {
            $0.set("registration", registration)
            if let secret { $0.set("secret", secret) }
          })
      }
    }
  }

  /// Who removes it as its backend ends what its device may say, and a device that is registered under its name later has a secret of its own.
  func delete(_ call: HTTPCall, _ visitor: Visitor) {
    guard visitor.isBackend else { return applied(call, visitor, visitor.message("unregister")) }
    let removal = RegistryCall.write(.devices) { store, _ in
      try store.removeSecret(ofInstallation: visitor.installation, app: visitor.app)
    }
    registry.call(removal) { result in
      guard case .success = result else { return refuseUnwritten(call) }
      applied(call, visitor, visitor.message("unregister"))
    }
  }

  private func refuseUnwritten(_ call: HTTPCall) {
    call.answer(Manner.own.answer(.unavailable("the registry can't be written to for now")))
  }

  /// A new secret, where the device has lost its own.
  func renewSecret(_ call: HTTPCall, _ visitor: Visitor) {
    guard visitor.isBackend else { return call.answer(Manner.own.answer(.notAllowed)) }
    devices(call, visitor) { _ in
      giveSecret(call, visitor, replacing: true) { secret in
        call.answer(.json(200) { if let secret { $0.set("secret", secret) } })
      }
    }
  }

  /// - Parameter then: with nil where it has one; the call is answered where the registry takes none now.
  private func giveSecret(_ call: HTTPCall, _ visitor: Visitor, replacing: Bool, then: @escaping ([UInt8]?) -> Void) {
    let secret = NewSecret(.device)
    let hash = secret.hash
    registry.call(
      .write(.devices) {
        try $0.setSecret(hash, ofInstallation: visitor.installation, app: visitor.app, replacing: replacing, now: $1)
      }
    ) { result in
      switch result {
      case .success(let isSet): then(isSet ? secret.text : nil)
      case .failure: refuseUnwritten(call)
      }
    }
  }

  // MARK: user

  func putUser(_ call: HTTPCall, _ visitor: Visitor) {
    guard maySayUser(visitor) else { return call.answer(Manner.own.answer(.notAllowed)) }
    guard let document = call.object(applications.limits.json) else { return }
    guard let user = document.text(of: "user") else { return call.refuse("InvalidParameters", "user: missing") }
    let name = document.text(of: "name")
    if applications[visitor.app]?.isUPMC == true, name == nil {
      return call.refuse("InvalidParameters", "name: missing")
    }
    bindAll(call, visitor, user, name, looks: Self.looks)
  }

  /// Looks at an installation's registrations while its tokens are changing.
  private static let looks = 5

  private func bindAll(_ call: HTTPCall, _ visitor: Visitor, _ user: [UInt8], _ name: [UInt8]?, looks: Int) {
    guard looks > 0 else {
      return call.answer(Manner.own.answer(.unavailable("the installation's token is changing all the time")))
    }
    devices(call, visitor) { records in
      bind(call, visitor, user, name, records[...]) { bindAll(call, visitor, user, name, looks: looks - 1) }
    }
  }

  /// One registration after the other: an installation has one for each sender and kind of token.
  /// What waits for a worker is no answer: until then the installation may get another token, to which it says nothing.
  /// - Parameter again: called where one of them has another token by now, whose user this isn't yet.
  private func bind(
    _ call: HTTPCall, _ visitor: Visitor, _ user: [UInt8], _ name: [UInt8]?, _ records: ArraySlice<DeviceRecord>,
    again: @escaping () -> Void
  ) {
    guard let record = records.first else { return call.answer(.json(200) { _ in }) }
    var line = visitor.message("register")
    line.set("platform", record.device.platform == .apns ? "apns" : "fcm")
    line.set("token", record.device.token)
    if let sender = record.device.sender { line.set("sender", sender) }
    if let kind = record.device.kind { line.set("kind", kind.name) }
    if let activity = record.device.activity, !activity.isEmpty { line.set("activity", activity) }
    // As it was: that its user is another says nothing of the token.
    line.set("registered_at", time: record.registeredAt)
    line.set("user", user)
    if let name { line.set("name", name) }
    let isLate = Manner.own.answer(.unavailable("no worker has bound the user yet: say it again"))
    change(call, line.closed(), visitor.app, late: isLate) { answer in
      guard answer.text(of: "registration") == record.registration else { return again() }
      bind(call, visitor, user, name, records.dropFirst(), again: again)
    }
  }

  func deleteUser(_ call: HTTPCall, _ visitor: Visitor) {
    guard maySayUser(visitor) else { return call.answer(Manner.own.answer(.notAllowed)) }
    applied(call, visitor, visitor.message("unregister_user"))
  }

  // MARK: groups and topics

  /// A user's groups are the user's: who may not say who uses the device doesn't change them.
  func group(_ call: HTTPCall, _ visitor: Visitor) {
    guard maySayUser(visitor) else { return call.answer(Manner.own.answer(.notAllowed)) }
    var line = visitor.message(call.request.method == "PUT" ? "group_join" : "group_leave")
    line.set("group", call.path[6])
    applied(call, visitor, line)
  }

  func topic(_ call: HTTPCall, _ visitor: Visitor) {
    devices(call, visitor) { records in
      let op = call.request.method == "PUT" ? "subscribe" : "unsubscribe"
      let line = JSONObjectWriter.topicChange(op, visitor.app, call.path[6], tokens: records.map(\.registration))
      change(call, line, visitor.app) { answer in
        let results = answer.value("results", of: answer.root).map { Array(answer.elements(of: $0)) } ?? []
        for result in results {
          guard let error = answer.value("error", of: result) else { continue }
          return call.refuse(answer.text(error), "the topic was not joined or left")
        }
        call.answer(.json(200) { _ in })
      }
    }
  }

  // MARK: steps

  /// The registrations that the installation has; the call is answered where there are none.
  private func devices(_ call: HTTPCall, _ visitor: Visitor, then: @escaping ([DeviceRecord]) -> Void) {
    registry.call(.read { try $0.device(.installation(visitor.installation), app: visitor.app) }) { result in
      switch result {
      case .success(let records):
        let present = records.filter { $0.state != .gone }
        guard !present.isEmpty else { return call.refuse("NotRegistered", "the installation is not registered", status: 404) }
        then(present)
      case .failure: refuseUnread(call)
      }
    }
  }

  private func refuseUnread(_ call: HTTPCall) {
    call.answer(Manner.own.answer(.unavailable("the registry can't be read for now")))
  }

  /// For a change of which nothing is to be said but that it was applied.
  private func applied(_ call: HTTPCall, _ visitor: Visitor, _ line: consuming JSONObjectWriter) {
    change(call, line.closed(), visitor.app) { _ in call.answer(.json(200) { _ in }) }
  }

  /// - Parameters:
  ///   - late: the answer while it is not applied yet, and will be.
  ///   - then: with the answer to a change that was applied.
  private func change(
    _ call: HTTPCall, _ change: [UInt8], _ app: [UInt8], late: HTTPAnswer = .json(202) { _ in },
    then: @escaping (JSONDocument) -> Void
  ) {
    if case .failure(let refusal) = RegistryChange.parse(change, limits: changes.limits) {
      return call.refuse(refusal.code.rawValue, refusal.reason)
    }
    changes.change(change, app: app) { outcome in
      switch outcome {
      case .answered(let answer):
        guard let error = answer.text(of: "error") else { return then(answer) }
        let word = String(decoding: error, as: UTF8.self)
        let reason = answer.text(of: "reason").map { String(decoding: $0, as: UTF8.self) } ?? ""
        call.refuse(word, reason, status: Self.status(of: word))
      case .accepted: call.answer(late)
      case .refused(let reason), .unknown(let reason): call.answer(Manner.own.answer(.unavailable(reason)))
      }
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
