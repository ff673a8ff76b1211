import Foundation
import PushCore
import Testing

@testable import Gateway

@Suite("Requests made from old senders' notifications")
struct BinaryRequestTests {
  private static let now: Int64 = 1_800_000_000

  private func request(_ frame: BinaryFrame) throws(BinaryRefusal) -> BinaryRequest {
    try BinaryRequest(
      frame, app: Array("com.example.app".utf8), now: Self.now, id: Array("m-1".utf8), limits: RequestLimits())
  }

  private func frame(
    _ payload: String = #"{"aps":{"alert":"Hello"}}"#, expiry: UInt32? = nil, priority: UInt8 = 10
  ) -> BinaryFrame {
    BinaryFrame(identifier: 1, expiry: expiry, priority: priority, token: OldSender.token, payload: Array(payload.utf8))
  }

  private func body(_ request: BinaryRequest) throws -> NSDictionary {
    try #require(try JSONSerialization.jsonObject(with: Data(request.body)) as? NSDictionary)
  }

  @Test("have the payload unchanged, beside token, priority and lifetime")
  func whole() throws {
    let payload =
      #"{ "aps" : {"alert":"H\u00e9llo \/ \ud83d\ude00","badge":3,"sound":"default"}, "n":1.50e3, "acme":["a",null]}"#
    let request = try request(frame(payload, expiry: UInt32(Self.now) + 60))
    #expect(String(decoding: request.body, as: UTF8.self).contains(payload))
    let body = try body(request)
    #expect(body["to"] as? String == "apns:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")
    #expect(body["priority"] as? String == "high" && request.priority == .high)
    #expect(body["time_to_live"] as? Int == 60)
    let headers = try #require((body["apns"] as? NSDictionary)?["headers"] as? [String: String])
    #expect(headers == ["apns-push-type": "alert", "apns-expiration": "1800000060"])
    #expect(request.properties.timestamp == UInt64(Self.now))
    #expect(request.properties.messageID == Array("m-1".utf8) && request.properties.appID == Array("com.example.app".utf8))
    #expect(request.properties.deliveryMode == 2 && request.properties.contentType == Array("application/json".utf8))
  }

  @Test("have a lifetime from the expiry: none, a single attempt, at most four weeks, or over")
  func lives() throws {
    func life(_ expiry: UInt32?) throws -> (Int?, UInt64?) {
      let request = try request(frame(expiry: expiry))
      return (try body(request)["time_to_live"] as? Int, request.properties.timestamp)
    }
    #expect(try life(nil) == (nil, UInt64(Self.now)))
    #expect(try life(0) == (0, UInt64(Self.now)))
    #expect(try life(.max) == (2_419_200, UInt64(Self.now)))
    #expect(try life(1_700_000_000) == (1, 1_699_999_999))
    #expect(try life(UInt32(Self.now)) == (1, UInt64(Self.now) - 1))
  }

  @Test("that only wake the app are background pushes, at any priority")
  func background() throws {
    func type(_ payload: String) throws -> String? {
      let apns = try body(try request(frame(payload)))["apns"] as? NSDictionary
      return (apns?["headers"] as? [String: String])?["apns-push-type"]
    }
    #expect(try type(#"{"aps":{"content-available":1},"x":"y"}"#) == "background")
    #expect(try type(#"{"aps":{"content-available":1,"sound":""}}"#) == "alert")
    #expect(try type(#"{"aps":{"content-available":1,"category":"c"}}"#) == "alert")
    #expect(try type(#"{"aps":{"content-available":0}}"#) == "alert")
    #expect(try type(#"{"aps":{}}"#) == "alert")
    #expect(try type(#"{"x":1}"#) == "alert")
  }

  @Test("have priority normal for 5")
  func normal() throws {
    let request = try request(frame(priority: 5))
    #expect(request.priority == .normal)
    #expect(try body(request)["priority"] as? String == "normal")
  }

  @Test(
    "that the fleet would refuse are processing errors at once",
    arguments: [
      "", "{", "[]", #""text""#, "{}}", #"{}},"to":"apns:00"#, "{\"aps\":\"\u{0}\"}", #"{"aps":{"badge":"1"}}"#,
      #"{"aps":1}"#, #"{"aps":{"alert":"a"},"aps":{}}"#, #"{"aps":{"alert":"a"}} x"#,
    ])
  func refused(_ payload: String) {
    #expect(throws: BinaryRefusal(status: .processingError, identifier: 1)) { try request(frame(payload)) }
  }

  @Test("of every accepted payload are accepted by the fleet")
  func taken() throws {
    for payload in [#"{"aps":{}}"#, #"{"x":1}"#, "{}", #"{"aps":{"alert":{"loc-key":"k","loc-args":["a"]}}}"#] {
      let request = try request(frame(payload))
      #expect(throws: Never.self) { try SendRequest.parse(request.body).get() }
    }
  }
}
