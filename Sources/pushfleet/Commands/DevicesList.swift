import DeviceRegistry
import Foundation
import PushCore
import Reactor

/// `pushfleet devices list`: devices in a state, portion by portion, however many they are.
enum DevicesList {
  private static let portion = 1_000
  private static let states: [(word: String, state: DeviceState)] = [("gone", .gone), ("suspect", .suspect), ("stale", .stale)]

  /// A list comes in portions, whose columns are nearly alike.
  private static let columns: [TextTable.Column] = [
    .text("SINCE                   ", least: 24), .text("REASON", least: 12, rank: 2),
    .name("REGISTRATION", least: 12, rank: 1),
    .text("KIND", least: 5, rank: 3), .name("TOKEN", least: 16),
  ]

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
        let lines = TextTable(columns, rows: records.map(\.cells)).lines(width: width)
        Terminal.print(lines.dropFirst(cursor == 0 ? 0 : 1).joined(separator: "\n"))
      } else if cursor == 0 {
        Terminal.say("no devices are \(word)\(options["since"] == nil ? "" : " since then")")
      }
      guard records.count == portion, let last = records.last else { return }
      cursor = last.id
    }
  }
}

extension DeviceRecord {
  /// For a list: since when, why, which token.
  fileprivate var cells: [String] {
    [
      markedAt.map { Figures.moment($0) } ?? "-", reason.map { String(printing: $0) } ?? "-",
      String(printing: registration), (device.kind ?? .alert).name, String(printing: device.token),
    ]
  }
}
