import PushCore
import Testing

@testable import DeviceRegistry

@Suite("Device groups and groups of users on both databases")
struct GroupTests {
  private func key(_ answer: ChangeAnswer) throws -> [UInt8] {
    guard case .notificationKey(let key, _) = answer else { throw TestFailure("refused: \(text(answer.json))") }
    return key
  }

  @Test("A group is created, grows, shrinks and ends with its last member", arguments: Backend.all)
  func life(_ backend: Backend) throws {
    let registry = try backend.open()
    let ids = try (0..<3).map { text(try registry.register("t\($0)")) }
    let created = try registry.change(
      #"{"op":"group_create","notification_key_name":"home","registration_ids":["\#(ids[0])","\#(ids[0])","unknown"]}"#)
    let key = try key(created)
    #expect(RegistryID.kind(of: key) == .group)
    #expect(created == .notificationKey(key, failed: [2]))
    let again = try registry.change(
      #"{"op":"group_create","notification_key_name":"home","registration_ids":["\#(ids[1])"]}"#)
    #expect(
      text(again.json).hasPrefix(#"{"error":"notification_key already exists","reason":"#))
    let add =
      #"{"op":"group_add","notification_key":"\#(text(key))","notification_key_name":"home","registration_ids":["\#(ids[1])","t2"]}"#
    for _ in 0..<2 { #expect(try registry.change(add) == .notificationKey(key, failed: [])) }
    #expect(try registry.tokens(.group(key), pageSize: 2) == ["t0", "t1", "t2"])
    #expect(try registry.store.survey(.group(key), app: TestRegistry.app).estimate == 3)
    let remove = #"{"op":"group_remove","notification_key":"\#(text(key))","registration_ids":["t0","t1","t2"]}"#
    #expect(try registry.change(remove) == .notificationKey(key, failed: []))
    #expect(try registry.store.survey(.group(key), app: TestRegistry.app).exists == false)
    guard case .refused(.notificationKeyNotFound, _) = try registry.change(add) else { throw TestFailure("still there") }
  }

  @Test("A repeated change has the same answer, and a different one has its own", arguments: Backend.all)
  func repeated(_ backend: Backend) throws {
    let registry = try backend.open()
    for token in ["t0", "t1"] { _ = try registry.register(token) }
    func again(_ json: String) throws -> ChangeAnswer {
      let change = try RegistryChange.parse(Array(json.utf8), defaultApp: TestRegistry.app, limits: registry.limits).get()
      return try #require(try registry.store.apply([.repeated(change)], now: 2_000).first)
    }
    let create = #"{"op":"group_create","notification_key_name":"home","registration_ids":["t1","t0","nobody"]}"#
    let answer = try registry.change(create)
    let key = try key(answer)
    #expect(try again(create) == answer)
    guard case .refused(.notificationKeyExists, _) = try registry.change(create) else { throw TestFailure("made twice") }
    guard
      case .refused(.notificationKeyExists, _) = try again(
        create.replacing(#","nobody""#, with: "").replacing(#","t0""#, with: ""))
    else { throw TestFailure("another group") }
    let users = #"{"op":"group_create","notification_key_name":"club","users":["u1","u2"]}"#
    let made = try registry.change(users)
    #expect(try again(users) == made)
    let remove = #"{"op":"group_remove","notification_key":"\#(text(key))","registration_ids":["t0","t1"]}"#
    for _ in 0..<2 { #expect(try again(remove) == .notificationKey(key, failed: [])) }
    guard case .refused(.notificationKeyNotFound, _) = try registry.change(remove) else { throw TestFailure("still there") }
    #expect(try again(create.replacing("home", with: "new")) != answer)
  }

  @Test(
    "A group's errors are in GCM's words", arguments: Backend.all,
    [
      (#"{"op":"group_create","notification_key_name":"x","registration_ids":["unknown"]}"#, "no valid registration ids"),
      (#"{"op":"group_add","notification_key":"nonsense","registration_ids":["t0"]}"#, "notification_key not found"),
      (
        #"{"op":"group_add","notification_key":"KEY","notification_key_name":"other","registration_ids":["t0"]}"#,
        "notification_key_name doesn't match the group name of the notification_key"
      ),
      (#"{"op":"group_add","notification_key":"KEY","registration_ids":["unknown"]}"#, "no valid registration ids"),
      (#"{"op":"group_add","notification_key":"KEY","users":["u"]}"#, "InvalidParameters"),
      (#"{"op":"group_add","notification_key":"KEY","registration_ids":[]}"#, "InvalidParameters"),
      (#"{"op":"group_add","notification_key":"KEY"}"#, "InvalidParameters"),
      (#"{"op":"group_drop","notification_key":"KEY"}"#, "InvalidParameters"),
      (#"{"op":"group_create","#, "InvalidJSON"),
    ])
  func errors(_ backend: Backend, _ example: (String, String)) throws {
    let registry = try backend.open()
    _ = try registry.register("t0")
    let key = try key(
      try registry.change(#"{"op":"group_create","notification_key_name":"home","registration_ids":["t0"]}"#))
    let answer = try registry.change(example.0.replacing("KEY", with: text(key)))
    guard case .refused(let error, let reason) = answer else { throw TestFailure("taken: \(text(answer.json))") }
    #expect(error.rawValue == example.1)
    #expect(!reason.isEmpty)
  }

  @Test("The 21st member is refused, and the change with it", arguments: Backend.all)
  func limit(_ backend: Backend) throws {
    let registry = try backend.open()
    for index in 0..<21 { _ = try registry.register("t\(index)") }
    let most = (0..<20).map { "\"t\($0)\"" }.joined(separator: ",")
    let key = try key(
      try registry.change(#"{"op":"group_create","notification_key_name":"full","registration_ids":[\#(most)]}"#))
    let answer = try registry.change(#"{"op":"group_add","notification_key":"\#(text(key))","registration_ids":["t20"]}"#)
    guard case .refused(.tooManyMembers, _) = answer else { throw TestFailure("taken") }
    #expect(try registry.tokens(.group(key), pageSize: 50).count == 20)
  }

  @Test("Joining an unknown group fails and creates none; joining without a user fails (UP-07, UP-08)", arguments: Backend.all)
  func joinRefused(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try registry.register("t1", #""user":"u","name":"U""#)
    _ = try registry.register("t2")
    guard case .refused(.groupNotFound, _) = try registry.change(#"{"op":"group_join","group":7,"token":"t1"}"#) else {
      throw TestFailure("joined")
    }
    #expect(try registry.store.group(.name(Array("7".utf8)), app: TestRegistry.app) == nil)
    _ = try registry.change(#"{"op":"group_create","notification_key_name":"7","users":[]}"#)
    guard case .refused(.noUser, _) = try registry.change(#"{"op":"group_join","group":"7","token":"t2"}"#) else {
      throw TestFailure("joined")
    }
    guard case .refused(.groupNotFound, _) = try registry.change(#"{"op":"group_leave","group":8,"token":"t1"}"#) else {
      throw TestFailure("left")
    }
  }

  @Test("Joining twice is one membership, by a number or its text (UP-09)", arguments: Backend.all)
  func joinTwice(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try registry.register("t1", #""user":"u","name":"U""#)
    let key = try key(try registry.change(#"{"op":"group_create","notification_key_name":"7","users":[]}"#))
    #expect(try registry.change(#"{"op":"group_join","group":7,"token":"t1"}"#) == .notificationKey(key, failed: []))
    #expect(try registry.change(#"{"op":"group_join","group":"7","token":"t1"}"#) == .notificationKey(key, failed: []))
    #expect(try registry.store.group(.key(key), app: TestRegistry.app)?.users == [Array("u".utf8)])
    #expect(try registry.tokens(.group(key)) == ["t1"])
    #expect(try registry.change(#"{"op":"group_leave","group":7,"token":"t1"}"#) == .notificationKey(key, failed: []))
    #expect(try registry.tokens(.group(key)).isEmpty)
    #expect(try registry.store.survey(.group(key), app: TestRegistry.app).exists)
  }

  @Test("Membership follows the user, not the device (UP-10)", arguments: Backend.all)
  func followsUser(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try registry.register("t1", #""user":"ann","name":"A""#)
    _ = try registry.register("t2", #""user":"bob","name":"B""#)
    let key = try key(try registry.change(#"{"op":"group_create","notification_key_name":"g","users":[]}"#))
    _ = try registry.change(#"{"op":"group_join","group":"g","token":"t1"}"#)
    _ = try registry.register("t1", #""user":"bob","name":"B""#)
    #expect(try registry.tokens(.group(key)).isEmpty)
    _ = try registry.register("t3", #""user":"ann","name":"A""#)
    #expect(try registry.tokens(.group(key)) == ["t3"])
  }

  @Test("A device that is gone can be removed from its group, and makes room", arguments: Backend.all)
  func goneMember(_ backend: Backend) throws {
    var limits = RegistryLimits()
    limits.groupMembers = 2
    limits.groupUsers = 1
    let registry = try backend.open(limits)
    for index in 0..<3 { _ = try registry.register("t\(index)", #""user":"u\#(index)""#) }
    let key = try text(
      key(registry.change(#"{"op":"group_create","notification_key_name":"g","registration_ids":["t0","t1"]}"#)))
    try registry.mark("t0", .gone(since: 5_000), now: 6_000)
    let members = { (op: String, token: String) in
      #"{"op":"group_\#(op)","notification_key":"\#(key)","registration_ids":["\#(token)"]}"#
    }
    guard case .refused(.tooManyMembers, _) = try registry.change(members("add", "t2")) else { throw TestFailure("added") }
    #expect(try registry.change(members("remove", "t0")) == .notificationKey(Array(key.utf8), failed: []))
    #expect(try registry.change(members("add", "t2")) == .notificationKey(Array(key.utf8), failed: []))
    guard case .refused = try registry.change(members("add", "t0")) else { throw TestFailure("a gone device was added") }
    // A member of a full group may join it again (UP-09).
    _ = try registry.change(#"{"op":"group_create","notification_key_name":"team","users":["u1"]}"#)
    let join = #"{"op":"group_join","group":"team","token":"t1"}"#
    for _ in 0..<2 { #expect(try registry.change(join).isRefusal == false) }
    #expect(try registry.change(#"{"op":"group_join","group":"team","token":"t2"}"#).isRefusal)
    // A refused change creates no user.
    #expect(try registry.change(#"{"op":"group_create","notification_key_name":"big","users":["n1","n2","n1"]}"#).isRefusal)
    #expect(try registry.store.survey(.user(Array("n1".utf8)), app: TestRegistry.app).exists == false)
  }
}
