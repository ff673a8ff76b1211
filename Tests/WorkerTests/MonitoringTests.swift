import Foundation
import Testing

@testable import Gateway
@testable import Webhooks
@testable import Worker

/// Everything that alert rules, the dashboard and their pages name must exist.
@Suite("Monitoring")
struct MonitoringTests {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  private func text(_ path: String) throws -> String {
    try String(contentsOf: Self.root.appending(path: path), encoding: .utf8)
  }

  private var families: Set<String> {
    let texts = [
      MetricsText.of(MetricsTextTests.report()), GatewayFigures().text(version: "1", waiting: 0, isReady: true),
      WebhookFigures.text([], version: "1"),
    ]
    let lines = texts.flatMap { $0.split(separator: "\n") }
    return Set(lines.filter { $0.hasPrefix("# TYPE ") }.map { String($0.split(separator: " ")[2]) })
  }

  @Test(
    "every metric that a document or alert names exists",
    arguments: [
      "deploy/monitoring/alerts.yml", "deploy/monitoring/alerts.test.yml", "deploy/monitoring/alerts.days.test.yml",
      "deploy/monitoring/grafana.json",
      "docs/operate/runbook.md",
      "docs/operate/scaling.md", "docs/operate/deploying.md", "docs/operate/dead-letters.md", "docs/operate/watching.md",
      "docs/operate/scale.md", "docs/send/request.md", "docs/send/registry.md", "docs/send/gateway.md", "docs/send/webhooks.md",
    ])
  func names(path: String) throws {
    let families = families
    var named: Set<String> = []
    for match in try text(path).matches(of: /\b(pushfleet|process)_[a-z_]+\b/) { named.insert(String(match.0)) }
    let unknown = named.filter { name in
      let parts = ["_bucket", "_sum", "_count"].filter(name.hasSuffix).map { String(name.dropLast($0.count)) }
      return !families.contains(name) && !parts.contains(where: families.contains)
    }
    #expect(!named.isEmpty && unknown.isEmpty, "\(unknown.sorted())")
  }

  @Test("each alert has its own section of the runbook, and each section has an alert")
  func runbook() throws {
    let rules = try text("deploy/monitoring/alerts.yml")
    let alerts = rules.matches(of: /- alert: (\w+)/).map { String($0.1) }
    let sections = try text("docs/operate/runbook.md").matches(of: /\n### (\w+)\n/).map { String($0.1) }
    #expect(Set(alerts).count == alerts.count && Set(alerts) == Set(sections) && sections.count == alerts.count)
    let links = rules.matches(of: /runbook_url: \S+\/pushfleet\/runbook\.md#(\w+)/).map { String($0.1) }
    #expect(links == alerts.map { $0.lowercased() })
  }

  @Test("each alert has a test in which it fires, and no test is for a missing alert")
  func tested() throws {
    let alerts = try text("deploy/monitoring/alerts.yml").matches(of: /- alert: (\w+)/).map { String($0.1) }
    let tests = try text("deploy/monitoring/alerts.test.yml") + text("deploy/monitoring/alerts.days.test.yml")
    let firing = tests.matches(of: /alertname: (\w+)\n +exp_alerts:/).map { String($0.1) }
    #expect(Set(firing) == Set(alerts))
  }

  @Test("the dashboard is JSON whose panels don't overlap")
  func dashboard() throws {
    let data = Data(try text("deploy/monitoring/grafana.json").utf8)
    let object = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
    let panels = try #require(object["panels"] as? [[String: Any]])
    var taken: Set<[Int]> = []
    for panel in panels {
      let place = try #require(panel["gridPos"] as? [String: Int])
      let (x, y) = (place["x"] ?? 0, place["y"] ?? 0)
      for column in x..<(x + (place["w"] ?? 0)) {
        for row in y..<(y + (place["h"] ?? 0)) { #expect(column < 24 && taken.insert([column, row]).inserted) }
      }
    }
    #expect(Set(panels.compactMap { $0["id"] as? Int }).count == panels.count)
  }
}
