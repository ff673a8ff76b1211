import DeviceRegistry
import Foundation
import PushCore
import Reactor

/// `pushfleet devices list`: devices in a state, portion by portion, however many they are.
enum DevicesList {
  private static let portion = 1_000
  private static let states: [(word: String, state: DeviceState)] = [("gone", .gone), ("suspect", .suspect), ("stale", .stale)]

  static func run(_ options: Options) throws {
    let word = try options.required("state", states.map(\.word).joined(separator: ", "))
    guard let state = states.first(where: { $0.word == word })?.state else {
      throw Options.refusal("state", word, of: states.map(\.word))
    }
    let now = RegistrySession.now
    let since = try options["since"].map { text throws(CommandFailure) in try LetterFilter.time(text, now: now) } ?? 0
    let session = try RegistrySession(options, isReading: true)
    let app = try session.app(options)
    let width = Terminal.width
    var cursor: Int64 = 0
    while true {
      let records = try session.store.devices(app: app, in: state, since: since, after: cursor, limit: portion)
      if options.asJSON {
        for record in records { Terminal.print(record.json) }
      } else if !records.isEmpty {
        let lines = TextTable(records).lines(width: width)
        Terminal.print(lines.dropFirst(cursor == 0 ? 0 : 1).joined(separator: "\n"))
      } else if cursor == 0 {
        Terminal.say("no devices are \(word)\(options["since"] == nil ? "" : " since then")")
      }
      guard records.count == portion, let last = records.last else { return }
      cursor = last.id
    }
  }
}

extension TextTable {
  /// Since when, why, which token. A list comes in portions, whose columns are nearly alike.
  fileprivate init(_ records: [DeviceRecord]) {
    self.init(
      [
        (.text("SINCE                   ", least: 24), { $0.markedAt.map(Figures.moment) ?? "-" }),
        (.text("REASON", least: 12, rank: 2), { $0.reason.map { String(printing: $0) } ?? "-" }),
        (.name("REGISTRATION", least: 12, rank: 1), { String(printing: $0.registration) }),
        (.text("KIND", least: 5, rank: 3), { ($0.device.kind ?? .alert).name }),
        (.name("TOKEN", least: 16), { String(printing: $0.device.token) }),
      ], of: records)
  }
}
