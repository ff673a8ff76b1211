import PushCore
import Testing

@Suite("The size of a loss report")
struct LossReportLimitTests {
  @Test("is limited for any number of names, and the report says so")
  func limit() {
    var report = LossReport()
    for number in 0..<50_000 { report.add("GS-012", "name\(number)", .dropped, "unknown") }
    #expect(report.entries.count == 201 && report.entries.last?.words == "and more: the report ends here")
  }
}
