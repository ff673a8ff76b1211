import PushCore
import Testing

@Suite("The size of a loss report")
struct LossReportLimitTests {
  @Test("has an end, however many names a request has, and says so")
  func limit() {
    var report = LossReport()
    for number in 0..<50_000 { report.add("GS-012", "name\(number)", .dropped, "unknown") }
    #expect(report.entries.count == 201 && report.entries.last?.words == "and more: the report ends here")
  }
}
