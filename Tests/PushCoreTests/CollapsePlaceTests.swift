import Testing

@testable import PushCore

@Suite("The places in which requests replace each other")
struct CollapsePlaceTests {
  private static let token = Array("token".utf8)[...]

  private func keys(_ fields: String, app: String = "a") throws -> CollapseKeys {
    CollapseKeys(try request(fields), app: Array(app.utf8))
  }

  private func request(_ fields: String) throws -> SendRequest {
    let body = fields.hasPrefix("{") ? fields : #"{"to":"x"\#(fields.isEmpty ? "" : ",\(fields)")}"#
    return try SendRequest(parsing: Array(body.utf8))
  }

  @Test("without a collapse key, or with an empty one, there is none")
  func none() throws {
    for fields in ["", #""collapse_key":"""#, #""notification":{"body":"b"}"#] {
      let request = try request(fields)
      #expect(!request.isCollapsible)
      let keys = CollapseKeys(request, app: [])
      #expect(keys.place(.apns, token: Self.token) == nil && keys.place(.fcm, token: Self.token) == nil)
      #expect(keys.place(registration: [1]) == nil)
    }
  }

  @Test("there is one for each application, platform, token and key, whatever else the request has")
  func distinct() throws {
    let one = try #require(try keys(#""collapse_key":"k""#).place(.apns, token: Self.token))
    #expect(try keys(#""collapse_key":"k","data":{"a":"b"},"time_to_live":9"#).place(.apns, token: Self.token) == one)
    let others = [
      try keys(#""collapse_key":"k""#, app: "b").place(.apns, token: Self.token),
      try keys(#""collapse_key":"K""#).place(.apns, token: Self.token),
      try keys(#""collapse_key":"k""#).place(.fcm, token: Self.token),
      try keys(#""collapse_key":"k""#).place(.apns, token: Self.token.dropLast()),
      try keys(#""collapse_key":"k""#, app: "at").place(.apns, token: Self.token.dropFirst()),
      try keys(#""collapse_key":"k""#).place(registration: Array(Self.token)),
      try keys(#""collapse_key":"\#(String(repeating: "k", count: 65))""#).place(.apns, token: Self.token),
      try keys(#""collapse_key":"\#(String(repeating: "k", count: 66))""#).place(.apns, token: Self.token),
    ]
    #expect(Set(others.map { $0 ?? one } + [one]).count == others.count + 1)
  }

  @Test("each Live Activity of a device has its own, different from the device's, in any spelling of its token")
  func activities() throws {
    func keys(_ activity: String?) throws -> CollapseKeys {
      try self.keys(#""collapse_key":"k""# + (activity.map { #","apns":{"live_activity_token":"\#($0)"}"# } ?? ""))
    }
    let (device, one, other) = (try keys(nil), try keys("00aa"), try keys("00bb"))
    let registration = Array("pf1r~00000000000000000000000000".utf8)
    for platform in Platform.allCases {
      let places = [device, one, other].map { $0.place(platform, token: Self.token) }
      #expect(Set(places).count == 3 && !places.contains(nil))
      #expect(try keys("00AA").place(platform, token: Self.token) == places[1])
    }
    let places = [device, one, other].map { $0.place(registration: registration) }
    #expect(Set(places).count == 3 && !places.contains(nil))
    #expect(try keys("00AA").place(registration: registration) == places[1])
  }

  @Test("broadcasts have one for each application, audience, sender, kind of token and key")
  func broadcasts() throws {
    func place(_ fields: String, _ audience: String = "/topics/a", sender: String? = nil, app: String = "a") throws
      -> CollapsePlace?
    {
      try keys(fields, app: app).place(broadcastTo: Array(audience.utf8), sender: sender.map { Array($0.utf8) })
    }
    let key = #""collapse_key":"k""#
    let one = try #require(try place(key))
    #expect(try place(key + #","data":{"a":"b"}"#) == one)
    let others = [
      try place(#""collapse_key":"K""#), try place(key, "/topics/b"), try place(key, "/all"), try place(key, sender: ""),
      try place(key, sender: "1"), try place(key, app: "b"), try keys(key).place(registration: Array("/topics/a".utf8)),
    ]
    #expect(Set(others.map { $0 ?? one } + [one]).count == others.count + 1)
    #expect(try place("") == nil && place(#""apns":{"headers":{"apns-collapse-id":"k"}}"#) == nil)
  }

  @Test("the provider's value counts: the collapse id for APNs, Android's key for FCM")
  func platforms() throws {
    let plain = try keys(#""collapse_key":"k""#)
    let apple = try keys(#""apns":{"headers":{"apns-collapse-id":"k"}}"#)
    #expect(try request(#""apns":{"headers":{"apns-collapse-id":"k"}}"#).isCollapsible)
    #expect(apple.place(.apns, token: Self.token) == plain.place(.apns, token: Self.token))
    #expect(apple.place(.fcm, token: Self.token) == nil && apple.place(registration: [1]) == nil)
    let android = try keys(#"{"message":{"token":"x","android":{"collapse_key":"k"}}}"#)
    #expect(android.place(.apns, token: Self.token) == nil && android.place(registration: [1]) == nil)
    let one = try #require(android.place(.fcm, token: Self.token))
    // An iPhone behind FCM would show both.
    #expect(plain.place(.fcm, token: Self.token) != one)
    let both = try keys(#""collapse_key":"k","apns":{"headers":{"apns-collapse-id":"i"}}"#)
    #expect(both.place(.fcm, token: Self.token) != plain.place(.fcm, token: Self.token))
    #expect(both.place(.apns, token: Self.token) != plain.place(.apns, token: Self.token))
  }

  @Test("for browsers the topic's key counts: the header's or the collapse key, and an endpoint is a device")
  func browsers() throws {
    let endpoint = Array("https://push.example.net/a".utf8)
    let token = (endpoint + [0] + [UInt8](repeating: 1, count: 8 + 65 + 16))[...]
    let plain = try keys(#""collapse_key":"k""#)
    let one = try #require(plain.place(.webpush, token: token))
    #expect(plain.place(.webpush, token: endpoint[...]) == one)
    #expect(try keys(#""webpush":{"headers":{"topic":"k"}}"#).place(.webpush, token: token) == one)
    #expect(try keys(#""collapse_key":"x","webpush":{"headers":{"Topic":"k"}}"#).place(.webpush, token: token) == one)
    #expect(try keys(#""collapse_key":"x""#).place(.webpush, token: token) != one)
    let others = #""android":{"collapse_key":"k"},"apns":{"headers":{"apns-collapse-id":"k"}}"#
    for none in [others, #""webpush":{"headers":{"TTL":"5"}}"#] {
      #expect(try keys(none).place(.webpush, token: token) == nil)
    }
    // Of a device of unknown platform, a browser's own key is compared too.
    let phones = try keys(others).place(registration: [1])
    let own = try keys(others + #","webpush":{"headers":{"Topic":"x"}}"#).place(registration: [1])
    #expect(phones != nil && phones == plain.place(registration: [1]) && own != nil && own != phones)
    #expect(try request(#""webpush":{"headers":{"Topic":"k"}}"#).isCollapsible)
    #expect(try !request(#""webpush":{"headers":{"TTL":"5"}}"#).isCollapsible)
  }

  @Test("the newer one replaces, by the producer's time and then by arrival; copies of one message don't")
  func order() {
    func order(_ published: Int64, _ arrived: Int64, _ message: Int64) -> CollapseOrder {
      CollapseOrder(published: published, arrived: arrived, message: message)
    }
    #expect(order(1, 9, 1).isReplaced(by: order(2, 1, 2)) && !order(2, 1, 2).isReplaced(by: order(1, 9, 1)))
    #expect(order(1, 1, 5).isReplaced(by: order(1, 2, 3)) && !order(1, 2, 3).isReplaced(by: order(1, 1, 5)))
    #expect(!order(1, 1, 5).isReplaced(by: order(2, 2, 5)) && !order(2, 2, 5).isReplaced(by: order(1, 1, 5)))
  }
}
