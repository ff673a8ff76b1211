import Foundation
import PushCore
import Testing

@testable import DeviceRegistry

@Suite("Operations")
struct OperationTests {
  private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

  private func perform(_ action: FleetOperation.Action, _ store: DeviceStore, now: Int64 = 1) throws {
    _ = try store.perform(FleetOperation(action, by: bytes("o"), from: bytes("here")), now: now).get()
  }

  @Test("a list for some applications is limited after the others are left out", arguments: Backend.all)
  func someApplications(_ backend: Backend) throws {
    let registry = try backend.open()
    defer { withExtendedLifetime(registry) {} }
    let store = registry.store
    for _ in 0..<3 {
      for app in ["a", "b", "c\"]"] { try perform(.rate(.app(bytes(app)), 5), store) }
      try perform(.pause(.lane(bytes("send.high")), until: nil), store)
    }
    let some = try store.auditEvents(of: [bytes("a"), bytes("c\"]")], limit: 4)
    #expect(some.map(\.app) == [bytes("c\"]"), bytes("a"), bytes("c\"]"), bytes("a")])
    #expect(try store.auditEvents(of: [bytes("a")], before: some[3].number, limit: 9).count == 1)
    #expect(
      try store.auditEvents(subject: bytes("app:a"), limit: 9).map(\.subject) == Array(repeating: bytes("app:a"), count: 3))
    #expect(try store.auditEvents(of: [], limit: 9).isEmpty && store.auditEvents(limit: 100).count == 12)
    var description = CampaignTests.description
    for (number, app) in ["a", "b", "b", "c\"]"].enumerated() {
      description.id = [UInt8(number)]
      description.app = bytes(app)
      _ = try store.createCampaign(description, now: Int64(number))
    }
    #expect(try store.campaigns(of: [bytes("c\"]"), bytes("a")], limit: 2).map(\.description.id) == [[3], [0]])
    #expect(try store.campaigns(of: [], limit: 2).isEmpty && store.campaigns(limit: 9).count == 4)
    #expect(try store.controls().map(\.subject.kind) == ["lane", "app", "app", "app"])
  }

  @Test("a rate is granted once, whoever asks, and little of it is saved up", arguments: Backend.all)
  func grants(_ backend: Backend) throws {
    let registry = try backend.open()
    defer { withExtendedLifetime(registry) {} }
    let (one, other, app) = (registry.store, try registry.another(), bytes("a"))
    #expect(try one.grantPushes(7, of: app, now: 1) == 7, "no rate")
    try perform(.rate(.app(app), 50), one)
    #expect(try one.grantPushes(100, of: app, now: 1_000_000) == 10)
    #expect(try other.grantPushes(100, of: app, now: 1_000_000) == 0)
    #expect(try [one, other, one].map { try $0.grantPushes(2, of: app, now: 1_000_100) } == [2, 2, 1])
    #expect(try other.grantPushes(100, of: app, now: 2_000_000) == 10)
    // A worker's clock may be wrong.
    #expect(try one.grantPushes(100, of: app, now: 9_000_000) == 10 && other.grantPushes(1, of: app, now: 2_000_000) == 1)
    try perform(.rate(.app(app), 1), one)
    let slow = try (0..<50).reduce(0) { try $0 + one.grantPushes(5, of: app, now: 3_000_000 + Int64($1) * 100) }
    #expect(slow == 5 || slow == 6)
    try perform(.rate(.app(app), 10_000_000), one)
    #expect(try one.grantPushes(9_000_000, of: app, now: 4_000_000) == 2_000_000)
    try perform(.rate(.app(app), nil), one)
    #expect(try one.grantPushes(3, of: app, now: 4_000_000) == 3)
  }

  @Test("a new end or reason of a pause doesn't change its beginning", arguments: Backend.all)
  func pausedAgain(_ backend: Backend) throws {
    let registry = try backend.open()
    defer { withExtendedLifetime(registry) {} }
    let app = ControlSubject.app(bytes("a"))
    for (now, until, since) in [(1, Int64(9), Int64(1)), (5, 20, 1), (30, 40, 30)] as [(Int64, Int64, Int64)] {
      try perform(.pause(app, until: until), registry.store, now: now)
      #expect(try registry.store.control(app).since == since)
    }
    try perform(.drain(app), registry.store, now: 35)
    #expect(try registry.store.control(app).since == 35)
  }

  @Test("a forgotten user leaves no token, no membership and no name, and other users stay", arguments: Backend.all)
  func forget(_ backend: Backend) throws {
    let registry = try backend.open()
    defer { withExtendedLifetime(registry) {} }
    let store = registry.store
    let app = TestRegistry.app
    for (digit, fields) in [("1", #""user":"anna","topics":["news"]"#), ("2", #""kind":"voip""#)] {
      let token = String(repeating: digit, count: 64)
      try registry.change(#"{"platform":"apns","token":"\#(token)","environment":"production","installation":"i1",\#(fields)}"#)
    }
    _ = try registry.register("a2", #""user":"anna""#)
    _ = try registry.register("b1", #""installation":"i2","user":"ben","topics":["news"]"#)
    _ = try store.apply([.groupCreate(app: app, name: bytes("family"), .users([bytes("anna"), bytes("ben")]))], now: 1)
    #expect(try store.setSecret([1], ofInstallation: bytes("i1"), app: app, replacing: false, now: 1))

    #expect(throws: OperationRefusal.self) { try perform(.forget(user: bytes("nobody"), app: app), store) }
    #expect(throws: OperationRefusal.self) { try perform(.forget(user: bytes("anna"), app: bytes("other")), store) }
    try perform(.forget(user: bytes("anna"), app: app), store)
    #expect(try store.devices(app: nil, after: 0, limit: 9).map(\.device.token) == [bytes("b1")])
    #expect(try store.secret(ofInstallation: bytes("i1"), app: app) == nil)
    #expect(try store.group(.name(bytes("family")), app: app)?.users == [bytes("ben")])
    #expect(throws: OperationRefusal.self) { try perform(.forget(user: bytes("anna"), app: app), store) }
    let events = try store.auditEvents(limit: 9)
    #expect(events.map { String(decoding: $0.after, as: UTF8.self) } == [#"{"devices":3}"#])
    #expect(!String(decoding: events[0].json.line, as: UTF8.self).contains("anna"))
    // A number is never given again.
    let last = try #require(try store.devices(app: nil, after: 0, limit: 9).map(\.id).max())
    _ = try registry.register("c1", "")
    #expect(try store.devices(app: nil, after: last, limit: 9).map(\.id) == [last + 1])
  }

  @Test("a paused sender's credentials are paused with it, until its pause ends; other credentials are not")
  func senders() {
    var order = Control(.credential(bytes("a/senders/4")))
    (order.mode, order.until) = (.paused, 10)
    let credential = ControlSubject.credential(bytes("a/senders/4/fcm"))
    let shown = [order].inForce(for: credential, at: 9)
    #expect(shown.subject == credential && shown.mode == .paused && shown.sender == order.subject.name)
    #expect([order].inForce(for: credential, at: 10) == Control(credential))
    for other in ["a/fcm", "a/senders/42", "a/senders/42/fcm"] {
      let other = ControlSubject.credential(bytes(other))
      #expect([order].inForce(for: other, at: 9) == Control(other))
    }
    var own = Control(credential)
    own.mode = .paused
    #expect([order, own].inForce(for: credential, at: 9) == own)
  }

  @Test("two orders for a credential: a pause counts more than a drain, and the later discard counts")
  func joinedOrders() {
    let now: Int64 = 5
    func order(_ mode: Control.Mode, _ discarded: Int64?, _ name: String = "a/senders/4/fcm") -> Control {
      var control = Control(.credential(bytes(name)))
      (control.mode, control.discarded) = (mode, discarded)
      return control
    }
    for (own, sender, mode, discarded) in [
      (order(.paused, 1), order(.draining, 2, "a/senders/4"), Control.Mode.paused, Int64(2)),
      (order(.draining, 3), order(.paused, nil, "a/senders/4"), .paused, 3),
      (order(.running, nil), order(.draining, 4, "a/senders/4"), .draining, 4),
    ] {
      let shown = [sender, own].inForce(for: own.subject, at: now)
      #expect(shown.mode == mode && shown.discarded == discarded && shown.subject == own.subject)
      #expect((shown.sender != nil) == (own.mode != mode))
    }
  }

  @Test("what waits for a paused credential is discarded once, and stays so after the pause", arguments: Backend.all)
  func discards(_ backend: Backend) throws {
    let registry = try backend.open()
    defer { withExtendedLifetime(registry) {} }
    let store = registry.store
    let (sender, fcm) = (ControlSubject.credential(bytes("a/senders/4")), ControlSubject.credential(bytes("a/senders/4/fcm")))
    func discard(_ subject: ControlSubject, now: Int64) throws -> String? {
      let operation = FleetOperation(.discard(subject), by: bytes("ada"), from: [])
      if case .failure(let refusal) = try store.perform(operation, now: now) { return refusal.reason }
      return nil
    }
    func perform(_ action: FleetOperation.Action, now: Int64) throws {
      _ = try store.perform(FleetOperation(action, by: bytes("ada"), from: []), now: now)
    }
    #expect(try discard(fcm, now: 1)?.contains("is not paused") == true)
    try perform(.pause(sender, until: nil), now: 2)
    #expect(try discard(fcm, now: 3)?.contains("paused with its sender: name a/senders/4") == true)
    try perform(.pause(fcm, until: 10), now: 4)
    #expect(try discard(fcm, now: 5) == nil && store.control(fcm).discarded == 5 && store.control(fcm).until == 10)
    #expect(try discard(fcm, now: 11)?.contains("sender") == true, "its own pause has ended")
    try perform(.resume(fcm), now: 12)
    #expect(try store.control(fcm).discarded == 5 && store.control(fcm).mode == .running)
    try perform(.pause(fcm, until: nil), now: 13)
    try perform(.resume(fcm), now: 28 * 86_400_000 + 5)
    #expect(try store.control(fcm) == Control(fcm))
  }

  /// The result of a call on another connection that begins before `early` is committed.
  private func during<Answer: Sendable>(
    _ early: TransactionIntent, on registry: TestRegistry, _ change: (any SQLSession) throws -> Void,
    _ call: @escaping @Sendable (DeviceStore) throws -> Answer
  ) throws -> Answer {
    let (backend, location) = (registry.backend, registry.location)
    let answers = Collected<Result<Answer, any Error>>()
    let (isConnected, isDone) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let session = registry.store.session
    try session.begin(early)
    try change(session)
    Thread.detachNewThread {
      answers.add(
        Result {
          let store = try backend.connect(location)
          isConnected.signal()
          return try call(store)
        })
      isDone.signal()
    }
    #expect(isConnected.wait(timeout: .now() + .seconds(30)) == .success)
    // Time for its look, which it must not take before the commit.
    #expect(isDone.wait(timeout: .now() + .milliseconds(300)) == .timedOut)
    try session.commit()
    #expect(isDone.wait(timeout: .now() + .seconds(30)) == .success)
    return try answers.all[0].get()
  }

  @Test("a call that overlaps another one acts on that one's result", arguments: Backend.all)
  func overlaps(_ backend: Backend) throws {
    let registry = try backend.open()
    defer { withExtendedLifetime(registry) {} }
    let (store, app) = (registry.store, bytes("a"))
    try perform(.rate(.app(app), 50), store)

    let granted = try during(
      .campaigns, on: registry, { try $0.run(SQL.setPace, [.text(app), .int(1_000_000_000_000)]) },
      { try $0.grantPushes(10, of: app, now: 1_000_000) })
    #expect(granted == 0)

    let claimed = try during(
      .campaigns, on: registry, { try $0.run(Statement("UPDATE audit_events SET claimed_at = 1000"), []) },
      { try $0.claimAuditEvents(lease: 500, limit: 9, now: 1_001) })
    #expect(claimed.isEmpty)

    let campaign = CampaignTests.description
    _ = try store.createCampaign(campaign, now: 1)
    let values: [SQLValue] = [.blob(campaign.id), .int(CampaignState.cancelled.rawValue), .int(2)]
    let isHeld = try during(
      .campaigns, on: registry, { try $0.run(SQL.setState, values) },
      { try $0.setState(.held, of: campaign.id, now: 3) })
    #expect(try !isHeld && store.campaign(campaign.id)?.state == .cancelled)

    let paused: [SQLValue] = [
      .text(bytes("app")), .text(app), .text(bytes("paused")), .null, .null, .null, .int(2), .int(50), .null,
    ]
    _ = try during(
      .orders, on: registry, { try $0.run(SQL.setControl, paused) },
      { try $0.perform(FleetOperation(.rate(.app(app), 7), by: app, from: app), now: 3).get() })
    #expect(try store.control(.app(app)).mode == .paused && store.control(.app(app)).rate == 7)
  }

  @Test("a removal is recorded with its number and filter", arguments: Backend.all)
  func removals(_ backend: Backend) throws {
    let registry = try backend.open()
    defer { withExtendedLifetime(registry) {} }
    let store = registry.store
    try perform(.messages(.init("dead drop", app: nil, queue: "push.dead", count: 3)), store)
    try perform(
      .messages(.init("held drop", app: bytes("a"), queue: "q", count: 1, filter: [("reason", bytes("x\"y"))])), store)
    #expect(
      try store.auditEvents(limit: 2).map { String(decoding: $0.after, as: UTF8.self) }
        == [#"{"messages":1,"filter":{"reason":"x\"y"}}"#, #"{"messages":3}"#])
  }
}
