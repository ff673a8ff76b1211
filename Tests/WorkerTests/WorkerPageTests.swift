import Foundation
import PushCore
import TestSupport
import Testing

@testable import Delivery
@testable import Worker

private let chromium = "/usr/bin/chromium"

@Suite("The page of a worker")
struct WorkerPageTests {
  @Test("loads nothing from elsewhere, and runs only its own scripts")
  func policy() throws {
    let fleet = try QuietFleet()
    for (name, type) in [
      ("", "text/html"), ("worker.js", "text/javascript"), ("dom.js", "text/javascript"), ("parts.js", "text/javascript"),
      ("console.css", "text/css"), ("icon.svg", "image/svg+xml"),
    ] {
      let answer = try #require(fleet.probe.ask("/\(name)"))
      #expect(answer.status == 200 && answer.headers["content-type"] == "\(type); charset=utf-8", "\(name)")
      #expect(answer.headers["cache-control"] == "no-store" && answer.headers["x-content-type-options"] == "nosniff")
      let policy = try #require(answer.headers["content-security-policy"])
      #expect(policy.hasPrefix("default-src 'none'; script-src 'self'; style-src 'self'; ") && !policy.contains("unsafe"))
      let elsewhere = answer.body.matches(of: /(https?:)?\/\/[a-z0-9.]+\.[a-z]+[^ "']*/).map { String($0.0) }
      #expect(elsewhere.allSatisfy { $0.hasPrefix("http://www.w3.org/") }, "\(elsewhere)")
      #expect(answer.body.firstMatch(of: /[ ](style|on[a-z]+)="/) == nil && !answer.body.contains("innerHTML"))
    }
    #expect(fleet.probe.ask("/console.js")?.status == 404)
  }

  @Test("serves the report and the last quarter of an hour as JSON")
  func json() throws {
    let fleet = try QuietFleet()
    for path in ["/status.json", "/history.json"] {
      let answer = try #require(fleet.probe.ask(path))
      #expect(answer.status == 200 && answer.headers["content-type"] == "application/json")
      #expect(try JSONSerialization.jsonObject(with: Data(answer.body.utf8)) is [String: Any])
    }
  }

  @Test("has a sample every five seconds in its history, for the last quarter of an hour")
  func history() throws {
    let history = WorkerHistory()
    for second in 0..<2_000 { history.note(at: Int64(second) * 1_000) { MetricsTextTests.report() } }
    let object = try #require(try JSONSerialization.jsonObject(with: Data(history.json.utf8)) as? [String: Any])
    let samples = try #require(object["samples"] as? [[Double]])
    #expect(samples.count == 180 && samples.last?[0] == 1_995_000 && samples.last?[1] == 6 && samples.last?[2] == 6)
    let bounds = try #require(object["bounds"] as? [Double])
    #expect(bounds == PushTimes.answerBounds && samples[0].count == 7 + bounds.count + 1)
  }

  @Test(
    "shows in a browser what the worker reports, and executes nothing from the report",
    .enabled(if: FileManager.default.isExecutableFile(atPath: chromium) || isNothingLeftOut, "chromium isn't installed"))
  func browser() throws {
    let fleet = try QuietFleet()
    let whole = MetricsTextTests.report {
      $0.series[3] = "<img src=x onerror=alert(1)>"
      $0.counters.pushes.add(.failed(.collapsed), 2, .apns, .high, times: 10)
    }.whole
    for number in 0..<2 {
      fleet.begin(number)
      fleet.report(number, at: 1) {
        let at = $0.at
        $0 = whole
        $0.at = at
        $0.isReady = true
      }
    }
    let folder = NSTemporaryDirectory() + "/pushfleet-browser-\(UUID().uuidString.prefix(8))"
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let browser = try ChildProcess(
      [
        chromium, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--user-data-dir=\(folder)",
        "--virtual-time-budget=5000", "--window-size=1280,1600", "--dump-dom", "http://127.0.0.1:\(fleet.port)/",
      ], environment: ["PATH": "/usr/bin:/bin", "HOME": folder], output: nil)
    #expect(browser.wait() == 0)
    let page = browser.outputSoFar
    for words in [
      "problems", "version 1.2.3", "12 in all", "com.example.app", "Credential refused", "Registry down", "push.dead",
      "not an object", "Collapsed", "&lt;img src=x onerror=alert(1)&gt;",
    ] {
      #expect(page.contains(words), "\(words)")
    }
    #expect(!page.contains("<img") && page.contains("<svg viewBox=") && !page.contains("NaN") && !page.contains("undefined"))
    #expect(!page.contains("CONSOLE"), "\(page.split(separator: "\n").filter { $0.contains("CONSOLE") })")
  }

  @Test(
    "fits a phone, a tablet and a screen, light and dark, updates without reloading, and says when the worker is gone",
    .enabled(if: FileManager.default.isExecutableFile(atPath: chromium) || isNothingLeftOut, "chromium isn't installed"))
  func views() throws {
    let fleet = try QuietFleet()
    let whole = MetricsTextTests.report { $0.series[3] = String(repeating: "com.example.with.a.long.name.", count: 6) }.whole
    func report(_ application: String) {
      fleet.report(0, at: 1) {
        let at = $0.at
        $0 = whole
        $0.series[2] = application
        $0.at = at
        $0.isReady = true
      }
    }
    fleet.begin(0)
    report("com.example.before")
    let folder = NSTemporaryDirectory() + "/pushfleet-browser-\(UUID().uuidString.prefix(8))"
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Support/browser.py").path
    let input = Pipe()
    let browser = try ChildProcess(
      ["/usr/bin/python3", script, chromium, "http://127.0.0.1:\(fleet.port)/", folder, "com.example.after"],
      environment: ["PATH": "/usr/bin:/bin", "HOME": folder], output: nil, input: input.fileHandleForReading,
      errors: .standardError)
    defer { browser.end() }
    func lines() throws -> [[String: Any]] {
      try browser.outputSoFar.split(separator: "\n").map { line in
        try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any], "\(line)")
      }
    }
    try #require(browser.waitForLines(6, seconds: 180), "\(browser.outputSoFar)")
    let views = try lines()
    for view in views {
      #expect(view["shown"] as? Bool == true && view["overflow"] as? Int == 0, "\(view)")
      #expect((view["complaints"] as? [String])?.isEmpty == true, "\(view)")
      #expect(view["ink"] as? String != view["background"] as? String, "\(view)")
    }
    let grounds = Dictionary(grouping: views) { $0["scheme"] as? String }.mapValues {
      Set($0.compactMap { $0["background"] as? String })
    }
    #expect(grounds["light"]?.count == 1 && grounds["dark"]?.count == 1 && grounds["light"] != grounds["dark"], "\(grounds)")
    report("com.example.after")
    try input.fileHandleForWriting.write(contentsOf: Data("\n".utf8))
    try #require(browser.waitForLines(7, seconds: 60), "\(browser.outputSoFar)")
    #expect(try lines().last?["live"] as? Bool == true)
    fleet.stop()
    try input.fileHandleForWriting.write(contentsOf: Data("\n".utf8))
    #expect(browser.wait() == 0)
    #expect(try lines().last?["dead"] as? Bool == true)
  }
}
