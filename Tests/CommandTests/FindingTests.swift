import Foundation
import Testing

@testable import pushfleet

@Suite("The doctor's findings")
struct FindingTests {
  private func finding(_ level: Finding.Level) -> Finding {
    Finding(level, "broker", "\u{1B}[31mrefused", "do something")
  }

  @Test("what is wrong with the configuration outweighs what can't be reached, and warnings are no failure")
  func status() {
    #expect(Finding.status(of: []) == .done && Finding.status(of: [finding(.ok), finding(.warning)]) == .done)
    #expect(Finding.status(of: [finding(.warning), finding(.unreachable)]) == .unavailable)
    #expect(Finding.status(of: [finding(.unreachable), finding(.error), finding(.ok)]) == .configuration)
  }

  @Test("say what to do, on a line of their own, and nothing reaches the terminal as it came")
  func text() throws {
    let text = finding(.error).text(width: .max)
    #expect(text.hasSuffix("\n            → do something") && !text.contains("\u{1B}"))
    let line = try #require(try JSONSerialization.jsonObject(with: Data(finding(.warning).json.line)) as? [String: Any])
    #expect(
      line["level"] as? String == "warning" && line["about"] as? String == "broker"
        && line["remedy"] as? String == "do something")
  }

  @Test(
    "of the configuration come in the file's order, and a registry that can't be used is said once", arguments: [false, true])
  func configuration(isReversed: Bool) throws {
    let settings = ["broker: 5", "prefix: 5", "registry: 'sqlite:'", "prefetch: 'x'", "apps: 5", "retry: 5", "log: 5"]
    let site = try RegistrySite()
    let file = try site.write("{ \((isReversed ? settings.reversed() : settings).joined(separator: ", ")) }", "bad.json5")
    let ended = try site.run(["config", "check", file], isConfigured: false)
    let columns = ended.output.matches(of: /json5:1:(\d+)/).compactMap { Int($0.output.1) }
    #expect(columns.count > 4 && columns == columns.sorted(), "\(ended.output)")
    #expect(ended.output.contains("registry cannot be used: sqlite: names no file"), "\(ended.output)")
  }
}
