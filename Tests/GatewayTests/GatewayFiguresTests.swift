import Foundation
import TestSupport
import Testing

@testable import Gateway

private let promtool = "/usr/bin/promtool"

@Suite("A gateway's figures")
struct GatewayFiguresTests {
  private func lines(_ figures: GatewayFigures, _ prefix: String) -> [String] {
    let lines = figures.text(version: "1.2.3", waiting: 4, isReady: true).split(separator: "\n")
    return lines.map(String.init).filter { $0.hasPrefix(prefix) }
  }

  @Test("have a sample for each possible event before it happens, and for a rare one after it")
  func zeroes() {
    let figures = GatewayFigures()
    let before = lines(figures, "pushfleet_gateway_answers_total")
    #expect(
      before
        == [200, 400, 401, 403, 404, 413, 429, 503].map { #"pushfleet_gateway_answers_total{status="\#($0)"} 0"# })
    let responses = lines(figures, "pushfleet_gateway_binary_responses_total")
    #expect(responses.count == BinaryStatus.allCases.count && responses.allSatisfy { $0.hasSuffix("} 0") })
    figures.answered(503, after: 0.2)
    figures.answered(422, after: 0.2)
    figures.binary.responses[.missingTopic] = 3
    let after = lines(figures, "pushfleet_gateway_answers_total")
    #expect(after.contains(#"pushfleet_gateway_answers_total{status="503"} 1"#) && after.count == before.count + 1)
    #expect(
      lines(figures, "pushfleet_gateway_binary_responses_total")
        .contains(#"pushfleet_gateway_binary_responses_total{status="missing_topic"} 3"#))
  }

  @Test("count answers by duration, in a bounded number of samples")
  func times() {
    let figures = GatewayFigures()
    for seconds in [0.001, 0.2, 0.2, 99] { figures.answered(200, after: seconds) }
    let times = lines(figures, "pushfleet_gateway_answer_seconds")
    #expect(times.contains(#"pushfleet_gateway_answer_seconds_bucket{le="0.1"} 1"#))
    #expect(times.contains(#"pushfleet_gateway_answer_seconds_bucket{le="0.25"} 3"#))
    #expect(times.contains(#"pushfleet_gateway_answer_seconds_bucket{le="+Inf"} 4"#) && times.count == 15)
    #expect(times.last == "pushfleet_gateway_answer_seconds_count 4")
  }

  @Test("include program and process like a worker's")
  func process() {
    let figures = GatewayFigures()
    #expect(lines(figures, "pushfleet_build_info") == [#"pushfleet_build_info{version="1.2.3"} 1"#])
    #expect(
      lines(figures, "process_").compactMap { $0.split(separator: " ").first.map(String.init) } == [
        "process_cpu_seconds_total", "process_resident_memory_bytes", "process_start_time_seconds", "process_open_fds",
        "process_max_fds",
      ])
  }

  @Test(
    "pass promtool",
    .enabled(if: FileManager.default.isExecutableFile(atPath: promtool) || isNothingLeftOut, "promtool isn't installed"))
  func promtoolChecks() throws {
    let figures = GatewayFigures()
    figures.answered(200, after: 0.1)
    figures.published(.confirmed)
    figures.expiries = [.init(name: "gateway.http.certificate", notAfter: 99)]
    let file = NSTemporaryDirectory() + "/pushfleet-metrics-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: file) }
    try figures.text(version: "1.2.3", waiting: 0, isReady: false).write(toFile: file, atomically: false, encoding: .utf8)
    let child = try ChildProcess(
      [promtool, "check", "metrics"], environment: [:], output: nil, input: FileHandle(forReadingAtPath: file))
    #expect(child.wait() == 0 && child.outputSoFar.isEmpty, "\(child.outputSoFar)")
  }
}
