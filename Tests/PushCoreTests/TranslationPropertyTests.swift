import Foundation
import Testing

@testable import PushCore

/// Random requests from a seed: each translation is valid JSON with the request's content.
@Suite struct TranslationPropertyTests {
  struct Maker {
    var random: SplitMix

    mutating func one(in chance: Int) -> Bool { Int.random(in: 0..<chance, using: &random) == 0 }

    mutating func text() -> String {
      let alphabet = Array("ab\"\\/{}[]:, \u{1}\u{7F}é雑🇩🇰\u{2028}\t\n")
      return String((0..<Int.random(in: 0...12, using: &random)).map { _ in alphabet.randomElement(using: &random) ?? "a" })
    }

    mutating func request() -> [String: Any] {
      var body: [String: Any] = ["to": apnsToken]
      if !one(in: 3) {
        var notification: [String: Any] = [:]
        for key in ["title", "body", "subtitle", "title_loc_key", "body_loc_key", "icon", "tag", "click_action", "sound"]
        where one(in: 2) {
          notification[key] = text()
        }
        if one(in: 3) { notification["badge"] = one(in: 2) ? "\(Int.random(in: 0...99, using: &random))" as Any : 3 }
        if one(in: 3) { notification["body_loc_args"] = [text(), text()] }
        body["notification"] = notification
      }
      if !one(in: 3) {
        var data: [String: Any] = [:]
        for index in 0..<Int.random(in: 0...5, using: &random) {
          data["k\(index)" + text()] = one(in: 4) ? ["n": [1, text()]] as Any : one(in: 4) ? 2.5 as Any : text() as Any
        }
        body["data"] = data
      }
      if one(in: 3) { body["priority"] = one(in: 2) ? "high" : "normal" }
      if one(in: 3) { body["collapse_key"] = text().filter { $0 > " " && $0 != "\u{7F}" && $0 != "\u{2028}" } }
      if one(in: 3) { body["time_to_live"] = Int.random(in: 0...2_419_200, using: &random) }
      if one(in: 4) { body["content_available"] = true }
      if one(in: 4) { body["mutable_content"] = true }
      if one(in: 4) { body["delay_while_idle"] = true }
      if one(in: 4) {
        var aps: [String: Any] = ["alert": one(in: 2) ? text() as Any : ["title": text()] as Any]
        if one(in: 2) { aps["thread-id"] = text() }
        if one(in: 2) { aps["sound"] = NSNull() }
        body["apns"] = ["payload": ["aps": aps, "k0": [text()], "z": NSNull()]]
      }
      if one(in: 4) {
        body["android"] = ["ttl": "3.5s", "notification": ["tag": text(), "title": text()]]
      } else if one(in: 4) {
        let shown: [String: Any] = ["tag": text(), "id": 7]
        body["android_v2"] =
          one(in: 3) ? ["background_sync": [String: Any]()] : ["remote_notification": ["notification": shown]]
      }
      return body
    }
  }

  @Test("a stamped payload is always valid JSON with the request's content", arguments: 0..<300)
  func roundTrip(seed: UInt64) throws {
    var maker = Maker(random: SplitMix(state: seed))
    let source = maker.request()
    let request = try SendRequest.parse(Array(try JSONSerialization.data(withJSONObject: source))).get()

    let push: APNsPush
    do throws(Rejection) { push = try apns(request) } catch {
      #expect(error.code == .nothingForPlatform && source["apns"] == nil && request.contentAvailable == false)
      #expect((source["data"] as? [String: Any])?.isEmpty ?? true)
      #expect(try !fcm(request).contains(#""apns":"#))
      return
    }
    _ = try JSONDocument(push.payload)
    let payload = try #require(try JSONSerialization.jsonObject(with: Data(push.payload)) as? [String: Any])
    let aps = try #require(payload["aps"] as? [String: Any])
    let visible = !Set(aps.keys).isDisjoint(with: ["alert", "badge", "sound"])
    #expect(utf8(push.pushType) == (visible ? "alert" : "background"))
    if !visible { #expect(aps as? [String: Int] == ["content-available": 1] && push.priority == 5) }
    let block = ((source["apns"] as? [String: Any])?["payload"] as? [String: Any]) ?? [:]
    let data = source["data"] as? [String: Any] ?? [:]
    for (key, value) in data where block[key] == nil {
      let read = try #require(payload[key] as? String)
      if let text = value as? String { #expect(read == text) }
    }
    #expect(payload.count == 1 + data.keys.filter { block[$0] == nil }.count + block.keys.filter { $0 != "aps" }.count)
    if let notification = source["notification"] as? [String: Any], let badge = notification["badge"], visible {
      #expect(aps["badge"] as? Int == Int("\(badge)"))
    }
    if let id = push.collapseID { #expect(1...64 ~= id.count && id.allSatisfy { $0 > 0x1F && $0 != 0x7F }) }

    let body = Array(try fcm(request).utf8)
    _ = try JSONDocument(body)
    let message = try #require(
      (try JSONSerialization.jsonObject(with: Data(body)) as? [String: Any])?["message"] as? [String: Any])
    #expect(message["token"] as? String == "T:1")
    for (key, value) in data {
      let read = try #require((message["data"] as? [String: Any])?[key] as? String)
      if let text = value as? String { #expect(read == text) }
    }
    _ = try parsed(utf8(body)).targets
  }
}
