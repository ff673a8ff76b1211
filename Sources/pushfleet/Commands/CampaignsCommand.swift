import DeviceRegistry
import Foundation
import PushCore
import Reactor
import Settings

enum CampaignsCommand: Command {
  static let page = CommandPage(
    "campaigns", "list broadcasts with their progress; pause, resume and cancel them",
    forms: [
      .action("[list]", "--config", ["--app"], ["--limit"], ["--follow"], ["--json"]),
      .action("show", "--config", ["--json"], "ID"),
      .action("pause|resume|cancel", "--config", ["--json"], "ID"),
    ],
    """
    A campaign is a request to a topic, a condition or a large group while it is sent by pages, and for some time after. The list
    has those that aren't over and the newest of the others, with devices sent to, failed and remaining, devices a second and
    the time left. An ID may be abbreviated as long as it is one campaign's only.

    pause, resume and cancel take effect with the next page on every worker; what is on its way is delivered. resume also ends a
    hold: a campaign is held when an abnormal share of an application's tokens is refused, so look at environment, topic and
    credentials first; and when one of its pages has become a dead letter, so replay that first. What is over stays over, and what is not possible is refused (exit status 65).
    """,
    [
      .config(", which names the registry"), .option("app", "APP", "only this application's campaigns"),
      .option("limit", "N", "of those that are over, at most N (20)"),
      .flag("follow", "refresh every second until none is running"),
      .json("one JSON object per campaign, on a line of its own"),
    ],
    example: "pushfleet campaigns --config pushfleet.json5 --follow")

  static func run(_ options: Options) throws {
    guard options.action != "list" else { return try list(options) }
    guard let id = options.operands.first, !id.isEmpty else {
      throw CommandFailure(.usage, "name a campaign by its id; `pushfleet campaigns` lists them")
    }
    try options.refuseOperands(after: 1)
    let store = try RegistrySession(options, isReading: true).store
    var campaign = try find(id, in: store)
    if options.action == "show" {
      campaign.failures = try store.failures(of: campaign.description.id)
      return options.print(campaign.json, text: campaign.text)
    }
    try Steering(options.action).apply(to: campaign, in: store)
    let now = try store.campaign(campaign.description.id) ?? campaign
    options.print(now.json, text: "\(now.id) is \(now.state.name)")
  }

  // MARK: one campaign

  static func find(_ id: String, in store: any DeviceStore) throws -> Campaign {
    if let exact = try store.campaign(Array(id.utf8)) { return exact }
    let matches = try store.campaigns(limit: mostListed).filter { $0.id.hasPrefix(id) }
    guard let match = matches.first else {
      throw CommandFailure(.badInput, "there is no campaign \(Shown.value(id)); `pushfleet campaigns` lists them")
    }
    guard matches.count == 1 else {
      throw CommandFailure(.badInput, "\(Shown.value(id)) is ambiguous: \(matches.count) campaign ids begin with it")
    }
    return match
  }

  // MARK: the list

  private static let mostListed = 100_000

  private static func list(_ options: Options) throws {
    let session = try RegistrySession(options, isReading: true)
    let app = try session.givenApp(options)
    let limit = try options.integer("limit", in: 0...mostListed) ?? 20
    var last = ""
    while true {
      let campaigns = try selection(session.store, app, limit)
      var text = options.asJSON ? campaigns.map(\.jsonText).joined(separator: "\n") : table(campaigns)
      if options.has("follow"), !options.asJSON, let height = TerminalWidth.linesOfOutput { text = cut(text, to: height) }
      if text != last {
        if Terminal.isOutputInteractive, !last.isEmpty, !options.asJSON { erase(last) }
        if !text.isEmpty { Terminal.print(text) }
        last = text
      }
      guard options.has("follow"), campaigns.contains(where: { $0.state == .running }) else { return }
      Thread.sleep(forTimeInterval: 1)
    }
  }

  private static func selection(_ store: any DeviceStore, _ app: [UInt8]?, _ limit: Int) throws -> [Campaign] {
    var room = limit
    return try store.campaigns(limit: mostListed).filter { campaign in
      if let app, campaign.description.app != app { return false }
      guard campaign.state.isOver else { return true }
      room -= 1
      return room >= 0
    }
  }

  private static func table(_ campaigns: [Campaign]) -> String {
    guard !campaigns.isEmpty else { return "no campaigns" }
    return CampaignTable(campaigns).text(withBars: Terminal.isOutputInteractive, width: Terminal.width)
  }

  /// What is drawn over has to be on the screen, with a line for the cursor.
  static func cut(_ text: String, to height: Int) -> String {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    let room = max(height - 2, 1)
    guard lines.count > room + 1 else { return text }
    return lines.prefix(room).joined(separator: "\n") + "\n… and \(lines.count - room) more"
  }

  /// Back to where the text began.
  private static func erase(_ text: String) {
    Terminal.write(Array("\u{1B}[\(text.split(separator: "\n", omittingEmptySubsequences: false).count)A\u{1B}[J".utf8))
  }
}

/// What an operator wants of a campaign.
private struct Steering {
  let verb: String
  let state: CampaignState

  init(_ verb: String) {
    self.verb = verb
    state = verb == "pause" ? .paused : verb == "resume" ? .running : .cancelled
  }

  /// - Throws: status 65 when the campaign's state doesn't allow it.
  func apply(to campaign: Campaign, in store: any DeviceStore) throws {
    guard try !store.setState(state, of: campaign.description.id, now: RegistrySession.now) else { return }
    guard let current = try store.campaign(campaign.description.id) else {
      throw CommandFailure(.badInput, "campaign \(campaign.id) is no longer kept: it was over long ago")
    }
    if current.state == state { throw CommandFailure(.badInput, "campaign \(current.id) is \(state.name) already") }
    guard !current.state.isOver else {
      throw CommandFailure(
        .badInput,
        "campaign \(current.id) is over (\(current.state.name)): there is nothing to \(verb), only a new request sends again")
    }
    throw CommandFailure(.badInput, "campaign \(current.id) is \(current.state.name): there is nothing to \(verb)")
  }
}
