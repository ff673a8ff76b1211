import Foundation
import TestSupport
import Testing

@Suite("Allocations", .blocking)
struct AllocationTests {
  /// The limit of allocations for a push of a request with one device, from the broker's bytes to its acknowledgement, in the
  /// release build. Their cost depends on the machine, their number doesn't.
  private static let limit = 14.0

  @Test("of a push are no more than before")
  func push() throws {
    let site = try Site()
    // The share of traced requests depends on the machine's load.
    try site.startSimulator(settings: #"trace: { keep: "none" },"#)
    try site.declareTopology()
    let few = try allocations(site, pushes: 2_000)
    let many = try allocations(site, pushes: 22_000)
    let each = Double(many - few) / 20_000
    print("allocations for each push: \(each)")
    #expect(each > 1)
    if Program.isRelease { #expect(each <= Self.limit) }
  }

  /// jemalloc's count for a worker's whole life.
  private func allocations(_ site: Site, pushes: Int) throws -> Int {
    try site.send(tokens: (0..<pushes).map { token($0 % 100) })
    let statistics = ["MALLOC_CONF": "stats_print:true,stats_print_opts:Jgdablxe"]
    let words = ["worker", "--config", site.file("pushfleet.json5"), "--until-empty", "--json"]
    let ended = try site.run(words, environment: statistics)
    #expect(ended.status == 0)
    var requests = 0
    for size in ["small", "large"] {
      let pattern = "\"\(size)\":\\{[^}]*\"nrequests\":([0-9]+)"
      let text = try #require(ended.output.range(of: pattern, options: .regularExpression).map { ended.output[$0] })
      requests += try #require(text.split(separator: ":").last.flatMap { Int($0) })
    }
    return requests
  }
}
