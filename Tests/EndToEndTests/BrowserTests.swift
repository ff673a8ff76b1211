import Foundation
import TestSupport
import Testing

private let chromium = "/usr/bin/chromium"

/// Chromium gets the texts that `explain` prints, with the service worker of docs/send/browsers.md. No push service takes part.
@Suite("Pushes in a browser", .blocking)
struct BrowserTests {
  private struct Case {
    let request: String
    let isDeclarative: Bool
    /// The notification, without members that have their defaults.
    let shown: String
    var link: String?
    var badge: Int?
  }

  private static let cases = [
    Case(
      request: """
        {"to":"/topics/news","data":{"score":"1:0","half":2},"notification":{"title":"Portugal vs. Denmark","body":"great match!",
         "icon":"https://localhost:1/icon.png","image":"https://localhost:1/image.png","tag":"match","badge":3,
         "click_action":"https://example.com/m/1"}}
        """,
      isDeclarative: true,
      shown: """
        {"title":"Portugal vs. Denmark","body":"great match!","icon":"https://localhost:1/icon.png",
         "image":"https://localhost:1/image.png","tag":"match",
         "data":{"navigate":"https://example.com/m/1","fields":{"score":"1:0","half":"2"}}}
        """, link: "https://example.com/m/1", badge: 3),
    Case(
      request: """
        {"to":"/topics/news","notification":{"title":"t","click_action":"https://example.com/phones"},
         "webpush":{"notification":{"title":"“雑” <b>","requireInteraction":true},"fcm_options":{"link":"https://example.com/web"}}}
        """,
      isDeclarative: true,
      shown: #"{"title":"“雑” <b>","requireInteraction":true,"data":{"navigate":"https://example.com/web","fields":{}}}"#,
      link: "https://example.com/web"),
    Case(
      request: #"{"to":"/topics/news","data":{"k":"v"},"notification":{"title":"t","body":"b","tag":"g","badge":0}}"#,
      isDeclarative: false, shown: #"{"title":"t","body":"b","tag":"g","data":{"fields":{"k":"v"}}}"#, badge: 0),
    Case(
      request: #"{"to":"/topics/news","data":{"k":"v","n":5}}"#, isDeclarative: false,
      shown: #"{"title":"News","data":{"fields":{"k":"v","n":"5"}}}"#),
  ]

  /// The text of the push, as the fleet makes it.
  private static func text(_ request: String, _ site: Site) throws -> [String: Any] {
    let words = ["explain", try site.write(request, to: "request.json"), "--config", site.file("pushfleet.json5"), "--json"]
    let output = try site.run(words).output
    let view = Site.objects(output).first { $0["platform"] as? String == "webpush" }
    return try #require(view?["payload"] as? [String: Any], "\(output)")
  }

  @Test(
    "are shown by the documented service worker as they were requested, and a click opens their link",
    .enabled(if: FileManager.default.isExecutableFile(atPath: chromium) || isNothingLeftOut, "chromium isn't installed"))
  func shown() throws {
    let site = try Site()
    try site.write(
      """
      { broker: "\(site.brokerURI)",
        apps: { "\(Site.app)": { webpush: { key: "\(site.certificates.p8)", subject: "mailto:push@example.com" } } } }
      """, to: "pushfleet.json5")
    let texts = try Self.cases.map { try Self.text($0.request, site) }
    let lines = try texts.map { String(decoding: try JSONSerialization.data(withJSONObject: $0), as: UTF8.self) + "\n" }
    let code = try DocumentTests.blocks("js", in: "docs/send/browsers.md")
    try #require(code.count == 2)
    let browser = try ChildProcess(
      [
        "/usr/bin/python3", Site.support("notifications.py"), chromium, site.file("browser"),
        try site.write(code[0], to: "page.js"), try site.write(code[1], to: "worker.js"),
      ], environment: ["PATH": "/usr/bin:/bin", "HOME": site.folder.path], output: nil,
      input: FileHandle(forReadingAtPath: try site.write(lines.joined(), to: "pushes.ndjson")), errors: .standardError)
    defer { browser.end() }
    try #require(browser.waitForLines(lines.count, seconds: 180), "\(browser.outputSoFar)")
    #expect(browser.wait() == 0)

    let defaults: [String: Any] = [
      "title": "", "body": "", "icon": "", "image": "", "tag": "", "requireInteraction": false,
    ]
    for ((wanted, text), answer) in zip(zip(Self.cases, texts), Site.objects(browser.outputSoFar)) {
      #expect((text["web_push"] as? Int == 8030) == wanted.isDeclarative, "\(text)")
      let notification = try #require(JSONSerialization.jsonObject(with: Data(wanted.shown.utf8)) as? [String: Any])
      #expect(answer["shown"] as? NSArray == [defaults.merging(notification) { $1 }] as NSArray, "\(answer)")
      #expect(answer["opened"] as? String == wanted.link, "\(answer)")
      #expect(answer["badge"] as? Int == wanted.badge && answer["left"] as? Int == 0, "\(answer)")
      #expect((answer["complaints"] as? [String])?.isEmpty == true, "\(answer)")
    }
  }
}
