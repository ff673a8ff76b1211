import Broker
import DeviceRegistry
import PushCore

/// `pushfleet devices list`: all devices in a state, fetched in portions.
enum DevicesList {
  private static let states: [(word: String, state: DeviceState)] = [("gone", .gone), ("suspect", .suspect), ("stale", .stale)]

  static func run(_ options: Options) throws {
    let word = try options.required("state", states.map(\.word).joined(separator: ", "))
    guard let state = states.first(where: { $0.word == word })?.state else {
      throw Options.refusal("state", word, of: states.map(\.word))
    }
    let now = RegistrySession.now
    let since = try options["since"].map { text throws(CommandFailure) in try LetterFilter.time(text, now: now) } ?? 0
    let session = try RegistrySession(options, isReading: true)
    let app = try session.configuration.app(options)
    try options.printPortions(
      columns, json: \.json, none: "no devices are \(word)\(options["since"] == nil ? "" : " since then")"
    ) { last, limit in
      try session.store.devices(app: app, in: state, since: since, after: last?.id ?? 0, limit: limit)
    }
  }

  private static var columns: [(TextTable.Column, (DeviceRecord) -> String)] {
    [
      (.text("SINCE                   ", least: 24), { $0.markedAt.map(Figures.moment) ?? "-" }),
      (.text("REASON", least: 12, rank: 2), { $0.reason.map { String(printing: $0) } ?? "-" }),
      (.name("REGISTRATION", least: 12, rank: 1), { String(printing: $0.registration) }),
      (.text("KIND", least: 5, rank: 3), { ($0.device.kind ?? .alert).name }),
      (.name("TOKEN", least: 16), { $0.device.shownToken }),
    ]
  }
}

extension Options {
  private static let portion = 1_000

  /// Prints a list of any length. Column widths may change slightly from portion to portion.
  /// - Parameter next: returns at most `limit` rows after `last`, which is nil at first.
  func printPortions<Row>(
    _ columns: [(TextTable.Column, (Row) -> String)], json: (Row) -> JSONObject, none: String,
    next: (_ last: Row?, _ limit: Int) throws -> [Row]
  ) throws {
    let width = Terminal.width
    var last: Row?
    repeat {
      let rows = try next(last, Self.portion)
      if asJSON {
        for row in rows { Terminal.print(json(row)) }
      } else if !rows.isEmpty {
        let lines = TextTable(columns, of: rows).lines(width: width)
        Terminal.print(lines.dropFirst(last == nil ? 0 : 1).joined(separator: "\n"))
      } else if last == nil {
        Terminal.say(none)
      }
      last = rows.count == Self.portion ? rows.last : nil
    } while last != nil
  }
}
