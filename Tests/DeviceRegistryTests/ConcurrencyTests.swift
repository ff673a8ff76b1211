import Foundation
import PushCore
import Testing

@testable import DeviceRegistry

@Suite("Several writers and hostile texts on both databases")
struct ConcurrencyTests {
  @Test(
    "1,000 registrations of the same few tokens from several workers end without deadlock, each token once",
    arguments: Backend.all)
  func upserts(_ backend: Backend) throws {
    let registry = try backend.open()
    let failures = Collected<String>()
    let registrations = Collected<[UInt8]>()
    let location = registry.location
    DispatchQueue.concurrentPerform(iterations: 4) { worker in
      do {
        let store = try backend.connect(location)
        for round in 0..<25 {
          let changes: [RegistryChange] = (0..<10).map { index in
            var device = Registration(
              app: TestRegistry.app, platform: .fcm, token: Array("t\((index * 7 + worker * 3 + round) % 20)".utf8))
            device.user = Array("u\(worker)".utf8)
            device.topics = [Array("a\(index % 3)".utf8), Array("a\((index + worker) % 3)".utf8)]
            if index % 2 == 0 { device.installation = Array("i\((index + worker) % 5)".utf8) }
            return .register(device)
          }
          for answer in try store.apply(changes, now: Int64(round)) {
            if let id = answer.registration { registrations.add(id) } else { failures.add("\(answer)") }
          }
          _ = try store.mark(
            [DeviceMark(app: TestRegistry.app, platform: .fcm, token: Array("t1".utf8), verdict: .suspect, reason: [])], now: 1)
        }
      } catch { failures.add("\(error)") }
    }
    #expect(failures.all == [])
    #expect(registrations.all.count == 1_000)
    let devices = try registry.store.devices(app: nil, after: 0, limit: 1_000)
    #expect(Set(devices.map(\.device.token)).count == devices.count)
    #expect(devices.count <= 20)
    // Every id ever issued is still a name of one of the devices.
    let ids = Array(Set(registrations.all))
    for start in stride(from: 0, to: ids.count, by: 1_000) {
      let part = Array(ids[start..<min(start + 1_000, ids.count)])
      #expect(try !registry.store.resolve(part, app: TestRegistry.app).entries.contains(.unknown))
    }
  }

  static let hostile = [
    "'; DROP TABLE devices; --", "\" OR 1=1 --", "?1", "$1", "%s%n", "a' UNION SELECT * FROM users --",
    "\\'; DELETE FROM apps; --",
    "1); DELETE FROM devices; --", "E'\\x00'", "${jndi:ldap://x}", "😀'雑談", "''", "{}", "\\", "{\"a\":1}",
  ]

  @Test("SQL in any field is plain text", arguments: Backend.all, hostile)
  func injection(_ backend: Backend, _ hostile: String) throws {
    let registry = try backend.open()
    _ = try registry.register("witness", #""topics":["news"],"user":"w""#)
    let bytes = Array(hostile.utf8)
    var device = Registration(app: bytes, platform: .fcm, token: bytes)
    device.installation = bytes
    device.sender = bytes
    device.user = bytes
    device.name = bytes
    device.locale = bytes
    device.timeZone = bytes
    device.appVersion = bytes
    device.topics = [bytes]
    device.registeredAt = 1
    let answers = try registry.store.apply(
      [
        .register(device), .subscribe(app: bytes, topic: bytes, [.token(.fcm, bytes), .registration(bytes)]),
        .groupCreate(app: bytes, name: bytes, .devices([.token(.fcm, bytes)])),
        .groupCreate(app: bytes, name: bytes + [33], .users([bytes])),
        .groupJoin(app: bytes, .name(bytes + [33]), .installation(bytes)),
        .groupAdd(app: bytes, key: bytes, name: bytes, .devices([])),
      ], now: 1)
    #expect(answers.map(\.isRefusal) == [false, false, false, false, false, true])
    let record = try #require(try registry.store.devices(app: bytes, after: 0, limit: 9).first)
    device.environment = nil
    #expect(record.device == device)
    #expect(try registry.store.topics(app: bytes, after: [], limit: 9) == [TopicRecord(name: bytes, members: 1)])
    #expect(try registry.store.topics(app: bytes, after: bytes, limit: 9).isEmpty)
    for audience in [Audience.topic(bytes), .user(bytes)] {
      #expect(try registry.store.page(of: audience, kind: .alert, app: bytes, after: 0, upTo: 99, limit: 9).devices.count == 1)
    }
    _ = try registry.store.survey(.group(bytes), app: bytes)
    #expect(try registry.store.resolve([bytes], app: bytes).entries == [.unknown])
    #expect(try registry.store.device(.token(.fcm, bytes), app: bytes).count == 1)
    _ = try registry.store.mark(
      [DeviceMark(app: bytes, platform: .fcm, token: bytes, verdict: .suspect, reason: bytes)], now: 1)
    let campaign = CampaignDescription(id: bytes, app: bytes, messageID: bytes, target: bytes, total: 1, highWater: 1)
    #expect(try registry.store.createCampaign(campaign, now: 1).description == campaign)
    #expect(try registry.topic("news") == ["witness"])
  }

  @Test("A text that the database can't store affects only its own change", arguments: Backend.all)
  func unstorable(_ backend: Backend) throws {
    let registry = try backend.open()
    var bad = Registration(app: TestRegistry.app, platform: .fcm, token: Array("bad".utf8))
    bad.locale = [0x61, 0x00, 0x62, 0xFF]
    let good = Registration(app: TestRegistry.app, platform: .fcm, token: Array("good".utf8))
    let answers = try registry.store.apply([.register(good), .register(bad), .register(good)], now: 1)
    #expect(answers.count == 3)
    #expect(!answers[0].isRefusal && answers[0] == answers[2])
    #expect(try registry.record("good") != nil)
    // An impossible user has no devices, and is no fault.
    if backend == .sqlite {
      #expect(try registry.store.survey(.user([0x00, 0xFF]), app: TestRegistry.app).exists == false)
    }
  }
}
