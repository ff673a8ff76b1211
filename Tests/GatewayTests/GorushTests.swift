import DeviceRegistry
import Foundation
import PushCore
import Testing

@testable import Gateway

@Suite("gorush's notifications")
struct GorushTests {
  private func key(_ environment: DeviceEnvironment? = nil) -> GatewayKey {
    var key = GatewayKey(id: [1], hash: [], apps: [], rights: [.send], createdAt: 0)
    key.environment = environment
    return key
  }

  /// The translated request, which is valid.
  private func translated(_ fields: String, _ key: GatewayKey? = nil) throws -> NSDictionary {
    let document = try JSONDocument(Array("{\(fields)}".utf8))
    let (_, body) = try GorushNotification.read(document, document.root, key ?? self.key())
    _ = try SendRequest(parsing: body)
    return try #require(try JSONSerialization.jsonObject(with: Data(body)) as? NSDictionary)
  }

  private func aps(_ fields: String) throws -> NSDictionary? {
    let apns = try translated(#""platform":1,"tokens":["ab"],"# + fields)["apns"] as? [String: Any]
    return (apns?["payload"] as? [String: Any])?["aps"] as? NSDictionary
  }

  @Test("an alert is a text, or an object of title, message and the fields of alert, which win")
  func alerts() throws {
    #expect(try aps(#""message":"m""#) == ["alert": "m"])
    #expect(try aps(#""message":"m","title":"t""#) == ["alert": ["title": "t", "body": "m"]])
    #expect(
      try aps(#""message":"m","alert":{"body":"b","title-loc-key":"k","action":""}"#) == [
        "alert": ["body": "b", "title-loc-key": "k"]
      ])
    #expect(try aps(#""message":"m","alert":{"title":"","body":""}"#) == ["alert": "m"])
    #expect(try aps(#""content_available":true"#) == ["content-available": 1])
  }

  @Test("a sound is a name or an object; name and volume make it a critical one")
  func sounds() throws {
    #expect(try aps(#""sound":"s""#) == ["sound": "s"])
    #expect(
      try aps(#""sound":{"critical":1,"name":"n","volume":0.5}"#) == ["sound": ["critical": 1, "name": "n", "volume": 0.5]])
    #expect(try aps(#""sound":"s","volume":0.5"#) == ["sound": ["critical": 1, "name": "default", "volume": 0.5]])
    #expect(try aps(#""name":"n""#) == ["sound": ["critical": 1, "name": "n", "volume": 1]])
  }

  @Test("values that Go leaves out are absent; a badge and an expiration may be 0")
  func zeros() throws {
    let empty = #""title":"","data":{},"url-args":[],"stale-date":0,"development":false,"image":null,"api_key":"","retry":0"#
    #expect(try aps(#""message":"m","badge":0,"# + empty) == ["alert": "m", "badge": 0])
    let request = try translated(#""platform":1,"tokens":["ab"],"message":"m","expiration":0"#)
    #expect((request["apns"] as? [String: Any])?["headers"] as? [String: String] == ["apns-expiration": "0"])
  }

  @Test("what is shown has high priority unless the notification says otherwise")
  func priorities() throws {
    let notification = #""platform":1,"tokens":["ab"],"content_available":true"#
    #expect(try translated(notification)["priority"] == nil)
    #expect(try translated(notification + #","alert":{"title":"t"}"#)["priority"] as? String == "high")
    #expect(try translated(notification + #","title":"t","priority":"normal""#)["priority"] as? String == "normal")
    #expect(try translated(#""platform":2,"to":"a","data":{"a":1}"#)["priority"] == nil)
    #expect(try translated(#""platform":2,"to":"a","image":"https://x""#)["priority"] as? String == "high")
  }

  @Test(
    "Android's targets are tokens, a topic or a condition of FCM",
    arguments: [
      (#""to":"/topics/n""#, "fcm:/topics/n"), (#""topic":"n","tokens":[]"#, "fcm:/topics/n"),
      (#""topic":"/topics/n""#, "fcm:/topics/n"),
      (#""condition":"'a' in topics""#, "fcm:'a' in topics"), (#""to":"t""#, nil), (#""tokens":["t"]"#, nil),
    ] as [(String, String?)])
  func targets(fields: String, to: String?) throws {
    let request = try translated(#""platform":2,"message":"m","# + fields)
    #expect(request["to"] as? String == to && (request["registration_ids"] as? [String] == ["fcm:t"]) == (to == nil))
  }

  @Test("an environment is the key's")
  func environments() throws {
    let tokens = #""platform":1,"tokens":["ab"],"message":"m","#
    for (field, environment) in [("production", DeviceEnvironment.production), ("development", .sandbox)] {
      #expect(try translated(tokens + "\"\(field)\":true", key(environment))["apns"] != nil)
      for other in [nil, environment == .sandbox ? DeviceEnvironment.production : .sandbox] {
        #expect(throws: Rejection.self) { try translated(tokens + "\"\(field)\":true", key(other)) }
      }
    }
  }
}
