import Testing

@testable import PushCore

@Suite("Content without room in a push")
struct ContentPageTests {
  private static let page = "https://push.example.com/pages/0123456789"

  private func request(_ members: String, extensionBytes: Int? = 65_536) throws -> SendRequest {
    var limits = RequestLimits()
    limits.extensionBytes = extensionBytes
    return try parsed(#"{"to":"\#(apnsToken)",\#(members)}"#, limits: limits)
  }

  private func apns(_ request: SendRequest, page: String? = page, isUPMC: Bool = true) throws -> APNsTemplate {
    var report: LossReport?
    var context = context(request)
    context.page = page.map { Array($0.utf8) }
    return try APNsTemplate(
      request, settings: APNsSettings(topic: "com.example.app", isUPMC: isUPMC), context: context, report: &report
    )
  }

  private func text(_ count: Int) -> String { String(repeating: "x", count: count) }

  @Test("a push with room has the content, one without has the page's address, exact to the byte (UP-19, UP-21)")
  func room() throws {
    func members(_ count: Int) -> String { #""notification":{"body":"b"},"data":{"ext":"\#(text(count))","k":"v"}"# }
    let frame = try apns(request(members(0))).stamp(token: []).payload.count
    let fits = try apns(request(members(4_096 - frame)))
    #expect(!fits.usesPage && fits.stamp(token: []).payload.count == 4_096)
    let large = try apns(request(members(4_097 - frame)))
    let payload = utf8(large.stamp(token: []).payload)
    #expect(large.usesPage && payload.contains(#""ext":"\#(Self.page)""#) && payload.contains(#""k":"v""#))
    #expect(payload.utf8.count == frame + Self.page.utf8.count && !payload.contains("xxxx"))
    #expect(throws: Rejection.self) { try apns(request(members(4_097 - frame)), page: nil) }
  }

  @Test("beside a request's own mps, and in a background push, the address replaces the content")
  func elsewhere() throws {
    let data = #""data":{"ext":{"html":"\#(text(5_000))"},"mps":"mine"}"#
    #expect(
      utf8(try apns(request(#""notification":{"body":"b"},\#(data)"#)).stamp(token: []).payload).contains(
        #""ext":"\#(Self.page)","mps":"mine""#))
    #expect(utf8(try apns(request(data)).stamp(token: []).payload).contains(#""ext":"\#(Self.page)""#))
  }

  @Test("an address doesn't help a push that is too large without the content, or whose own block has it")
  func hopeless() throws {
    let large = #""notification":{"body":"b"},"data":{"ext":"\#(text(3_000))","k":"\#(text(4_000))"}"#
    #expect(throws: Rejection.self) { try apns(request(large)) }
    let own = #""notification":{"body":"b"},"data":{"ext":"e"},"apns":{"payload":{"ext":"\#(text(4_096))"}}"#
    #expect(throws: Rejection.self) { try apns(request(own)) }
    #expect(throws: Rejection.self) { try apns(request(#""notification":{"body":"b"},"data":{"k":"\#(text(4_090))"}"#)) }
  }

  @Test("FCM gets the address if its limit leaves no room")
  func fcm() throws {
    func made(_ request: SendRequest, _ report: inout LossReport?) throws -> FCMTemplate {
      var context = context(request)
      context.page = Array(Self.page.utf8)
      return try FCMTemplate(request, context: context, report: &report)
    }
    var nothing: LossReport?
    #expect(try !made(request(#""data":{"ext":"\#(text(4_090))"}"#), &nothing).usesPage)
    let large = try request(#""data":{"ext":"\#(text(4_094))","k":"v"}"#)
    let template = try made(large, &nothing)
    #expect(template.usesPage && template.countedBytes(of: large) == 3 + Self.page.utf8.count + 2)
    #expect(utf8(template.body(token: [])).contains(#""data":{"ext":"\#(Self.page)","k":"v"}"#))
    #expect(template.refusalForTopics(of: large) == nil)
    var report: LossReport? = LossReport()
    _ = try made(large, &report)
    #expect(report?.entries.contains { $0.rule == "UP-21" && $0.action == .converted } == true)
  }

  @Test("mps behind FCM has the address if data has the content and there is no room for both")
  func behindFCM() throws {
    let request = try request(#""notification":{"body":"b"},"data":{"ext":"\#(text(3_000))"}"#)
    var context = context(request)
    context.page = Array(Self.page.utf8)
    var report: LossReport? = LossReport()
    let template = try FCMTemplate(
      request, settings: FCMSettings(upmcTopic: "com.example.app"), context: context, report: &report
    )
    let body = utf8(template.body(token: Array("T:1".utf8)[...]))
    #expect(template.usesPage && body.contains(#""data":{"ext":"xxx"#) && body.contains(#""ext":"\#(Self.page)","senddate""#))
    #expect(report?.entries.contains { $0.rule == "UP-21" } == true)
  }

  @Test("content has its own limit if it may become a page, and otherwise counts with the rest of data")
  func limits() throws {
    let large = #""data":{"ext":"\#(text(5_000))","k":"\#(text(4_095))"}"#
    _ = try request(large)
    #expect(throws: Rejection.self) { try request(large, extensionBytes: nil) }
    #expect(throws: Rejection.self) { try request(large, extensionBytes: 4_999) }
    _ = try request(large, extensionBytes: 5_000)
    #expect(throws: Rejection.self) { try request(#""data":{"ext":"e","k":"\#(text(4_096))"}"#) }
    _ = try request(#""data":{"ext":[1,2],"k":"\#(text(4_095))"}"#, extensionBytes: 5)
    #expect(try request(#""data":{"ext":null}"#).extensionText == nil)
    #expect(try request(#""data":{"ext":{"a" : [1, "\u00e9"]}}"#).extensionText.map(utf8) == #"{"a":[1,"é"]}"#)
  }
}
