import Foundation
import TestSupport
import Testing

@Suite("Live activities", .blocking)
struct LiveActivityTests {
  static func update(_ event: String = "update", token: String? = nil) -> [String: Any] {
    var apns: [String: Any] = [
      "headers": ["apns-push-type": "liveactivity"],
      "payload": ["aps": ["timestamp": 1, "event": event, "content-state": ["score": 1]]],
    ]
    apns["live_activity_token"] = token
    return apns
  }

  @Test("a dead activity's token has its own kind of feedback, and pushes to its device continue")
  func deadTokens() throws {
    let site = try Site()
    let fcmScript = try site.write(#"{"android:1": {"status": 404, "reason": "UNREGISTERED"}}"#, to: "fcm-script.json")
    let fcm = try site.startFCM(["--script", fcmScript])
    let (dead, ended) = (token(0xac1), token(0xac2))
    try site.startFleet(
      script: [dead: ["status": 410, "reason": "ExpiredToken"], ended: ["status": 410, "reason": "Unregistered"]], apps: fcm)
    let worker = try site.startWorker()
    let registrations = try site.change([
      ["platform": "apns", "token": token(1), "installation": "i-1", "user": "u-1"],
      ["platform": "fcm", "token": "android:1", "installation": "i-2"],
    ]).compactMap { $0["registration"] as? String }
    #expect(registrations.count == 2)
    try site.publish([
      (["to": registrations[0], "apns": Self.update(token: dead)], ["message_id": "named"]),
      (["to": "apns:\(ended)", "apns": Self.update()], ["message_id": "raw"]),
      (["to": registrations[1], "apns": Self.update(token: dead)], ["message_id": "behind FCM"]),
    ])
    let events = try site.take("feedback", count: 3).map(\.json)
    worker.signal(15)
    #expect(worker.wait() == 0)
    func event(_ id: String) -> [String: Any] { events.first { $0["message_id"] as? String == id } ?? [:] }
    let named = event("named")
    #expect(named["event"] as? String == "NotRegistered" && named["kind"] as? String == "live_activity")
    #expect(named["token"] as? String == dead && named["registration"] as? String == registrations[0])
    #expect(named["installation"] as? String == "i-1" && named["user"] as? String == "u-1")
    let ids = try site.pushes().map { $0.headers["apns-id"] ?? "" }
    #expect(ids.contains(named["apns_id"] as? String ?? "none"))
    let raw = event("raw")
    #expect(raw["token"] as? String == ended && raw["kind"] as? String == "live_activity")
    #expect(raw["registration"] is NSNull && raw["installation"] == nil)
    let behind = event("behind FCM")
    #expect(behind["event"] as? String == "InvalidRegistration" && behind["token"] as? String == "android:1")
    #expect(behind["kind"] as? String == "alert" && behind["apns_id"] == nil && behind["installation"] as? String == "i-2")
    #expect(try site.take("dead").map(\.id) == ["behind FCM"])
    let suspects = try site.run(["devices", "list", "--state", "suspect", "--json", "--config", site.file("pushfleet.json5")])
    #expect(suspects.status == 0 && Site.objects(suspects.output).isEmpty, "\(suspects.output)")

    try site.publish([(["to": registrations[0], "data": ["m": "after"]], ["message_id": "after"])])
    try site.drain()
    #expect(try site.deliveries(of: "after") == [token(1): 1])
    #expect(try site.take("feedback").isEmpty)
  }
}
