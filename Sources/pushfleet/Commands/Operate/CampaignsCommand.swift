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
      .action("unreached", "--config", ["--json"], "ID"),
      .action("pause|resume|cancel", "--config", ["--reason"], ["--json"], "ID"),
    ],
    """
    A campaign is a request to a topic, a condition or a large group, which workers send in pages. The list has all campaigns
    that aren't over and the newest of the others: devices sent to, failed and remaining, devices per second, and the time left.
    An ID may be shortened as long as it is unique.

    unreached lists the devices that the campaign didn't reach, with the reason, up to 10,000. It may lack devices that failed
    while the registry was away. The list is kept as long as the campaign, for 30 days.

    pause, resume and cancel take effect on every worker within a few seconds; pushes on their way are still delivered. A
    campaign is held when an abnormal share of an application's tokens is refused: check environment, topic and credentials,
    then resume. It is also held when one of its pages becomes a dead letter: replay that letter, then resume. A campaign that
    is over can't be changed. A change that isn't possible is refused (exit status 65).
    """,
    [
      .config(", which names the registry"), .option("app", "APP", "only this application's campaigns"),
      .option("limit", "N", "at most N campaigns that are over (20)"),
      .flag("follow", "refresh every second until none is running"),
      RegistrySession.reasonOption, .json("one JSON object per campaign, each on its own line"),
    ],
    example: "pushfleet campaigns --config pushfleet.json5 --follow")

  static func run(_ options: Options) throws {
    guard options.action != "list" else { return try list(options) }
    guard let id = options.operands.first, !id.isEmpty else {
      throw CommandFailure(.usage, "name a campaign by its id; `pushfleet campaigns` lists them")
    }
    try options.refuseOperands(after: 1)
    let session = try RegistrySession(options)
    let store = session.store
    let campaign = try find(id, in: store)
    if options.action == "show" {
      let whole = try store.withFailures(campaign)
      return options.print(whole.json, text: whole.text)
    }
    if options.action == "unreached" { return try listUnreached(options, campaign, store) }
    try change(campaign, options.action, session)
    let now = try store.campaign(campaign.description.id) ?? campaign
    options.print(now.json, text: "\(now.id) is \(now.state.name)")
  }

  // MARK: one campaign

  static func find(_ id: String, in store: DeviceStore) throws -> Campaign {
    if let exact = try store.campaign(Array(id.utf8)) { return exact }
    let matches = try store.campaigns(limit: mostListed).filter { $0.id.hasPrefix(id) }
    guard let match = matches.first else {
      throw CommandFailure(.badInput, "there is no campaign \(SafeText.value(id)); `pushfleet campaigns` lists them")
    }
    guard matches.count == 1 else {
      throw CommandFailure(.badInput, "\(SafeText.value(id)) is ambiguous: \(matches.count) campaign ids begin with it")
    }
    return match
  }

  /// - Throws: status 65 if the campaign's state doesn't allow the change.
  private static func change(_ campaign: Campaign, _ verb: String, _ session: RegistrySession) throws {
    let state: CampaignState = verb == "pause" ? .paused : verb == "resume" ? .running : .cancelled
    guard try !session.changes(campaign, to: state) else { return }
    guard let current = try session.store.campaign(campaign.description.id) else {
      throw CommandFailure(.badInput, "campaign \(campaign.id) ended long ago and is no longer in the registry")
    }
    if current.state == state { throw CommandFailure(.badInput, "campaign \(current.id) is \(state.name) already") }
    guard !current.state.isOver else {
      throw CommandFailure(
        .badInput,
        "campaign \(current.id) is over (\(current.state.name)): there is nothing to \(verb); send a new request instead")
    }
    throw CommandFailure(.badInput, "campaign \(current.id) is \(current.state.name): there is nothing to \(verb)")
  }

  private static func listUnreached(_ options: Options, _ campaign: Campaign, _ store: DeviceStore) throws {
    let devices = try store.unreached(by: campaign.description.id, after: 0, limit: DeviceStore.mostUnreached)
    options.print(
      devices.map(\.json.line), text: devices.isEmpty ? "no device is listed" : TextTable(devices).text(width: Terminal.width))
  }

  // MARK: the list

  private static let mostListed = 100_000

  private static func list(_ options: Options) throws {
    let session = try RegistrySession(options)
    let app = try session.configuration.givenApp(options)
    let limit = try options.integer("limit", in: 0...mostListed) ?? 20
    var last = ""
    while true {
      let campaigns = try selection(session.store, app, limit)
      var text =
        options.asJSON
        ? campaigns.map { String(decoding: $0.json.line, as: UTF8.self) }.joined(separator: "\n")
        : campaigns.isEmpty
          ? "no campaigns" : CampaignTable.text(campaigns, withBars: Terminal.isOutputInteractive, width: Terminal.width)
      if options.has("follow"), !options.asJSON, let height = TerminalWidth.linesOfOutput { text = cut(text, to: height) }
      if text != last {
        if Terminal.hasControls, !last.isEmpty, !options.asJSON { erase(last) }
        if !text.isEmpty { Terminal.print(text) }
        last = text
      }
      guard options.has("follow"), campaigns.contains(where: { $0.state == .running }) else { return }
      Thread.sleep(forTimeInterval: 1)
    }
  }

  private static func selection(_ store: DeviceStore, _ app: [UInt8]?, _ limit: Int) throws -> [Campaign] {
    var room = limit
    return try store.campaigns(limit: mostListed).filter { campaign in
      if let app, campaign.description.app != app { return false }
      guard campaign.state.isOver else { return true }
      room -= 1
      return room >= 0
    }
  }

  /// Shortens the text to the screen, with a line left for the cursor, so that `erase` can reach all of it.
  static func cut(_ text: String, to height: Int) -> String {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    let room = max(height - 2, 1)
    guard lines.count > room + 1 else { return text }
    return lines.prefix(room).joined(separator: "\n") + "\n… and \(lines.count - room) more"
  }

  private static func erase(_ text: String) {
    Terminal.write(Array("\u{1B}[\(text.split(separator: "\n", omittingEmptySubsequences: false).count)A\u{1B}[J".utf8))
  }
}
