import DeviceRegistry
import Foundation
import TestSupport
import Testing

@testable import pushfleet

@Suite("pushfleet campaigns")
struct CampaignsTests {
  static let ids = [
    "3f2a0001-0000-4000-8000-000000000001", "3f2b0002-0000-4000-8000-000000000002", "9c000003-0000-4000-8000-0000000003",
  ]

  /// Three campaigns, the first begun first.
  static func site(_ backend: RegistrySite.Backend = .sqlite) throws -> RegistrySite {
    let site = try RegistrySite(backend)
    let store = try site.store()
    for (index, id) in ids.enumerated() {
      let description = CampaignDescription(
        id: Array(id.utf8), app: Array(RegistrySite.app.utf8), messageID: Array("m-\(index)".utf8),
        target: Array("/topics/news".utf8),
        total: 10_000, highWater: 10_000, chains: index == 2 ? 4 : 1)
      _ = try store.createCampaign(description, now: 1_000 + Int64(index))
    }
    return site
  }

  @Test("are listed with sent, failed, remaining, rate and time left, newest first", arguments: RegistrySite.Backend.available)
  func listed(backend: RegistrySite.Backend) throws {
    let site = try Self.site(backend)
    _ = try site.store().pageDone(
      PageReport(campaign: Array(Self.ids[0].utf8), page: 0, isLast: false, sent: 1_900, failed: 100), now: 2_000)
    let campaigns = try site.run(["campaigns", "--json"]).objects
    #expect(campaigns.map { $0["id"] as? String } == Self.ids.reversed())
    let first = try #require(campaigns.last)
    #expect(first["sent"] as? Int == 1_900 && first["failed"] as? Int == 100 && first["remaining"] as? Int == 8_000)
    #expect(first["rate"] as? Double == 2_000 && first["seconds_left"] as? Double == 4)
    #expect(first["state"] as? String == "running" && first["target"] as? String == "/topics/news")
    let table = try site.run(["campaigns", "list"]).lines
    #expect(table.count == 4)
    #expect(
      table[3].split(separator: " ", omittingEmptySubsequences: true)
        == ["3f2a0001", "running", "20", "%", "1,900", "100", "8,000", "2,000/s", "4", "s", "/topics/news"])
    #expect(try site.run(["campaigns", "show", "3f2a", "--json"]).objects.first?["message_id"] as? String == "m-0")
    let shown = try site.run(["campaigns", "show", "9c"]).lines.map { $0.split(separator: " ") }
    #expect(shown.contains(["state", "running"]) && shown.contains(["chains", "of", "pages", "4"]), "\(shown)")
    #expect(try !site.run(["campaigns", "show", "3f2a"]).output.contains("chains"))
  }

  @Test("are paused, resumed and cancelled; what a state doesn't allow is refused", arguments: RegistrySite.Backend.available)
  func steered(backend: RegistrySite.Backend) throws {
    let site = try Self.site(backend)
    let store = try site.store()
    func state(_ id: String) throws -> CampaignState? { try store.campaign(Array(id.utf8))?.state }
    func refused(_ words: [String], _ message: String) throws -> Bool {
      let ended = try site.run(["campaigns"] + words)
      return ended.status == 65 && ended.errors.contains(message) && ended.output.isEmpty
    }
    let paused = try site.run(["campaigns", "pause", "3f2a"])
    #expect(paused.status == 0 && paused.output == "\(Self.ids[0]) is paused\n")
    #expect(try state(Self.ids[0]) == .paused)
    #expect(try refused(["pause", "3f2a"], "is paused already"))
    #expect(try site.run(["campaigns", "resume", "3f2a", "--json"]).objects.first?["state"] as? String == "running")
    #expect(try refused(["resume", "3f2a"], "is running already"))
    _ = try store.setState(.held, of: Array(Self.ids[0].utf8), now: 0)
    #expect(try site.run(["campaigns", "show", "3f2a"]).output.contains("abnormal share of the tokens"))
    #expect(try site.run(["campaigns", "resume", "3f2a"]).status == 0)
    #expect(try state(Self.ids[0]) == .running)
    #expect(try site.run(["campaigns", "cancel", Self.ids[0]]).status == 0)
    #expect(try state(Self.ids[0]) == .cancelled)
    for verb in ["pause", "resume"] { #expect(try refused([verb, "3f2a"], "is over (cancelled)"), "\(verb)") }
    #expect(try refused(["cancel", "3f2a"], "is cancelled already"))
    #expect(try site.run(["campaigns", "cancel", ""]).status == 64)

    let last = Array(Self.ids[2].utf8)
    _ = try store.pageDone(PageReport(campaign: last, page: 0, isLast: true, sent: 5, failed: 0), now: 2_000)
    _ = try store.finish(last, claimant: [1], lease: 500)
    #expect(try refused(["cancel", "9c"], "is over (completed)"))

    #expect(try refused(["pause", "3f2"], "2 campaign ids begin with it"))
    #expect(try refused(["pause", "77"], "there is no campaign \"77\""))
    #expect(try site.run(["campaigns", "pause"]).status == 64)
    #expect(try site.run(["campaigns", "stop", "9c"]).status == 64)
  }

  @Test("are followed until none is running")
  func followed() throws {
    let site = try Self.site()
    let store = try site.store()
    for id in Self.ids.dropFirst() { _ = try store.setState(.paused, of: Array(id.utf8), now: 0) }
    let child = try ChildProcess(
      [Program.path, "campaigns", "--follow", "--json", "--config", site.configuration],
      environment: RegistrySite.environment, output: nil)
    defer { child.end() }
    #expect(child.waitForOutput(#""state":"running""#, seconds: 90))
    _ = try store.setState(.cancelled, of: Array(Self.ids[0].utf8), now: 0)
    #expect(child.wait() == 0)
    #expect(child.waitForOutput(#""state":"cancelled""#, seconds: 90))
  }

  @Test("that don't fit the terminal are cut, so that they can be drawn over")
  func cut() {
    let text = (1...10).map { "line \($0)" }.joined(separator: "\n")
    #expect(CampaignsCommand.cut(text, to: 24) == text && CampaignsCommand.cut(text, to: 11) == text)
    #expect(CampaignsCommand.cut(text, to: 6) == "line 1\nline 2\nline 3\nline 4\n… and 6 more")
    #expect(CampaignsCommand.cut(text, to: 1) == "line 1\n… and 9 more")
  }

  @Test("that were cancelled show the devices that were not sent to, though every page is settled")
  func cancelledMidway() throws {
    let site = try Self.site()
    let store = try site.store()
    let id = Array(Self.ids[0].utf8)
    _ = try store.pageDone(PageReport(campaign: id, page: 0, isLast: false, sent: 1_900, failed: 100), now: 2_000)
    _ = try store.setState(.cancelled, of: id, now: 2_500)
    _ = try store.pageDone(PageReport(campaign: id, page: 1, isLast: true, sent: 0, failed: 0), now: 3_000)
    #expect(try site.run(["campaigns", "show", "3f2a", "--json"]).objects.first?["remaining"] as? Int == 8_000)
    #expect(try site.run(["campaigns", "show", "3f2a"]).output.contains("not sent"))
    #expect(try site.run(["campaigns"]).output.contains("20 %"))
    // The command that is named works where several applications are configured.
    try site.configure("registry: \"\(site.location)\",", apps: [RegistrySite.app, "other"])
    let shown = try site.run(["campaigns", "show", "3f2a"]).output
    let command = try #require(shown.firstMatch(of: /`pushfleet (campaigns unreached [^`]*)`/)?.output.1)
    try store.addUnreached([UnreachedDevice(id: 1, salt: 0, error: .notRegistered)], by: id)
    let listed = try site.run(command.split(separator: " ").map(String.init))
    #expect(
      listed.status == 0 && listed.output.contains("NotRegistered") && listed.output.contains("deleted"), "\(listed.errors)")
  }

  @Test("of those that are over, only as many are listed as asked for; the others always")
  func limited() throws {
    let site = try Self.site()
    let store = try site.store()
    for id in Self.ids.dropFirst() { _ = try store.setState(.cancelled, of: Array(id.utf8), now: 0) }
    #expect(
      try site.run(["campaigns", "--json", "--limit", "1"]).objects.map { $0["id"] as? String } == [Self.ids[0], Self.ids[2]])
    #expect(try site.run(["campaigns", "--json", "--limit", "0"]).objects.count == 1)
    try site.configure("registry: \"\(site.location)\",", apps: [RegistrySite.app, "other"])
    #expect(try site.run(["campaigns", "--app", "other"]).output == "no campaigns\n")
  }

  @Test("have a bar of their own in the table where a person looks, and tell their ids apart")
  func bars() throws {
    let site = try Self.site()
    defer { withExtendedLifetime(site) {} }
    let store = try site.store()
    _ = try store.pageDone(
      PageReport(campaign: Array(Self.ids[1].utf8), page: 0, isLast: false, sent: 5_500, failed: 0), now: 2_000)
    let lines = CampaignTable.text(try store.campaigns(limit: 10), withBars: true).split(separator: "\n")
    #expect(lines[2].contains("3f2b0002  running  █████░░░░░ 55 %  5,500"))
    #expect(lines[1].contains("9c000003  running   ░░░░░░░░░░ 0 %") && lines[1].contains("-"))
  }

  @Test("never make a row longer than the terminal is wide", arguments: [200, 104, 80, 40, 1])
  func narrow(width: Int) throws {
    let site = try Self.site()
    defer { withExtendedLifetime(site) {} }
    let store = try site.store()
    _ = try store.pageDone(
      PageReport(campaign: Array(Self.ids[1].utf8), page: 0, isLast: false, sent: 5_500, failed: 0), now: 2_000)
    let campaigns = try store.campaigns(limit: 10)
    let lines = CampaignTable.text(campaigns, withBars: true, width: width).split(separator: "\n")
    #expect(lines.count == 4 && lines.allSatisfy { $0.count <= width }, "\(lines)")
    #expect((width >= 104) == lines[2].contains("█") && (width < 40) != lines[2].contains("5,500"), "\(lines)")
    let bar = ProgressBar("importing", total: 1_000_000)
    for done in [-1, 0, 7_864, 1_000_000, 1_000_193, .max] { #expect(bar.line(done, width: width).count < max(width, 2)) }
    #expect(
      bar.line(500_000, width: 80)
        == "importing \(String(repeating: "█", count: 15))\(String(repeating: "░", count: 15)) 50% (500000 of 1000000)")
    #expect(bar.line(1_000_193, width: 80).hasSuffix(" 100% (1000000 of 1000000)"))
    // Of which nobody knows the length.
    #expect(ProgressBar("sending", total: 0).line(193, width: width).count < max(width, 2))
  }

  @Test(
    "figures are for people",
    arguments: [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567"), (-1_000, "-1,000")])
  func counts(value: Int64, text: String) { #expect(Figures.count(value) == text) }

  @Test("times left are for people", arguments: [(0.2, "1 s"), (59.0, "59 s"), (200.0, "3 min 20 s"), (3_900.0, "1 h 5 min")])
  func durations(value: Double, text: String) { #expect(Figures.duration(value) == text) }
}
