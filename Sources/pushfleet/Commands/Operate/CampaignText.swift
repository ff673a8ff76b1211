import DeviceRegistry
import PushCore

extension Campaign {
  var id: String { String(printing: description.id) }

  /// Percentage of the devices that are done. The total is an estimate, so only a finished campaign shows 100.
  var percent: Int {
    guard state == .cancelled || !isComplete && state != .completed else { return 100 }
    return description.total > 0 ? Int(min(99, (sent + failed) * 100 / description.total)) : 0
  }

  var text: String {
    FactList.text([
      ("campaign", id), ("app", String(printing: description.app)), ("message", String(printing: description.messageID)),
      ("target", String(printing: description.target)), ("state", state.words), ("sent", Figures.count(sent)),
      ("failed", Figures.count(failed) + (failures.isEmpty ? "" : ": " + failures.map(words).joined(separator: ", "))),
      ("failed devices", failed > 0 ? failedDevices : nil),
      ("unknown", unknown > 0 ? "\(Figures.count(unknown)): a worker was lost while it sent to them" : nil),
      (state == .cancelled ? "not sent" : "remaining", state == .completed ? nil : "about \(Figures.count(remaining))"),
      ("received", received > 0 ? Figures.count(received) : nil), ("read", read > 0 ? Figures.count(read) : nil),
      ("rate", rate.map { "\(Figures.count(Int64($0)))/s" }), ("time left", timeLeft.map(Figures.duration)),
      ("pages done", Figures.count(pagesDone) + (pageCount.map { " of \(Figures.count($0))" } ?? "")),
      ("chains of pages", description.chains > 1 ? Figures.count(description.chains) : nil),
      ("begun", Figures.moment(createdAt)),
      ("last page", pagesDone > 0 ? Figures.moment(updatedAt) : nil), ("ended", finishedAt.map(Figures.moment)),
    ])
  }

  private func words(_ count: FailureCount) -> String {
    "\(Figures.count(count.devices)) \(count.error.rawValue)\(count.platform.map { " (\($0.label))" } ?? "")"
  }

  private var failedDevices: String {
    "`pushfleet campaigns unreached \(id)`; their letters: `pushfleet dead show \(String(printing: description.messageID))`"
  }
}

extension TextTable {
  init(_ devices: [UnreachedDevice]) {
    self.init(
      [
        (.name("REGISTRATION", least: 20), { String(printing: $0.registration) }),
        (.text("ERROR", least: 12), { $0.error.rawValue }),
        (.text("PLATFORM", least: 8, rank: 1), { $0.platform?.label ?? "-" }),
        (.text("STATE", least: 8, rank: 2), { $0.state.map { "\($0)" } ?? "deleted" }),
        (.text("USER", least: 8, rank: 3), { $0.user.map { String(printing: $0) } ?? "-" }),
      ], of: devices)
  }
}

extension CampaignState {
  var isOver: Bool { self == .completed || self == .cancelled }

  var words: String {
    switch self {
    case .paused: "paused: `campaigns resume` continues it, `campaigns cancel` ends it"
    case .held:
      "held: an abnormal share of the tokens was refused (check environment, topic and credential), or a page is a dead letter "
        + "(`dead list`, `dead replay`); then run `campaigns resume` or `campaigns cancel`"
    case .running, .cancelled, .completed: name
    }
  }
}

enum Figures {
  /// `1,234,567`
  static func count(_ value: Int64) -> String {
    var digits = String(value.magnitude)
    var groups: [Substring] = []
    while digits.count > 3 {
      groups.insert(digits.suffix(3), at: 0)
      digits = String(digits.dropLast(3))
    }
    return (value < 0 ? "-" : "") + ([digits[...]] + groups).joined(separator: ",")
  }

  static func count(_ value: Int) -> String { count(Int64(value)) }

  /// - Parameter value: Unix milliseconds, shown as `2026-11-20T21:22:00.000Z`.
  static func moment(_ value: Int64) -> String { String(decoding: Timestamp.text(value), as: UTF8.self) }

  /// - Parameter value: Unix milliseconds, shown as `2026-11-20T21:22:00Z`.
  static func time(_ value: Int64) -> String { String(decoding: Timestamp.text(value).prefix(19), as: UTF8.self) + "Z" }

  /// - Parameter value: seconds, shown as `12 s`, `3 min 20 s` or `1 h 5 min`.
  static func duration(_ value: Double) -> String {
    guard value < 1e9 else { return "years" }
    let seconds = Int(max(0, value).rounded(.up))
    switch seconds {
    case ..<60: return "\(seconds) s"
    case ..<3_600: return "\(seconds / 60) min \(seconds % 60) s"
    default: return "\(seconds / 3_600) h \(seconds / 60 % 60) min"
    }
  }
}

enum CampaignTable {
  /// The shortest prefix length, at least 8, that keeps the ids unique.
  private static func length(telling ids: [String]) -> Int {
    var length = 8
    let longest = ids.map(\.count).max() ?? 0
    while length < longest, Set(ids.map { $0.prefix(length) }).count < Set(ids).count { length += 4 }
    return min(length, max(longest, 8))
  }

  /// - Parameter width: columns of the terminal. Narrow tables first lose the bars, then shorten the targets.
  static func text(_ campaigns: [Campaign], withBars: Bool, width: Int = .max) -> String {
    let table = table(campaigns, withBars)
    return withBars && table.width > width
      ? text(campaigns, withBars: false, width: width) : table.lines(width: width).joined(separator: "\n")
  }

  private static func table(_ campaigns: [Campaign], _ withBars: Bool) -> TextTable {
    let idLength = length(telling: campaigns.map(\.id))
    func done(_ campaign: Campaign) -> String {
      (withBars ? ProgressBar.bar(campaign.percent / 10, of: 10) + " " : "") + "\(campaign.percent) %"
    }
    return TextTable(
      [
        (.text("CAMPAIGN", least: .max), { String($0.id.prefix(idLength)) }),
        (.text("STATE", least: 9, rank: 1), { $0.state.name }), (.figure("DONE", rank: 2), done),
        (.figure("SENT", rank: 3), { Figures.count($0.sent) }), (.figure("FAILED", rank: 4), { Figures.count($0.failed) }),
        (.figure("REMAINING", rank: 6), { Figures.count($0.remaining) }),
        (.figure("RATE", rank: 8), { $0.rate.map { "\(Figures.count(Int64($0)))/s" } ?? "-" }),
        (.figure("TIME LEFT", rank: 7), { $0.timeLeft.map(Figures.duration) ?? "-" }),
        (.name("TARGET", least: 12, rank: 5), { String(printing: $0.description.target) }),
      ], of: campaigns)
  }
}
