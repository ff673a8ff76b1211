import DeviceRegistry
import Foundation
import PushCore

/// `pushfleet devices list`: devices in a state, portion by portion, however many they are.
enum DevicesList {
  private static let portion = 1_000
  private static let states: [(word: String, state: DeviceState)] = [("gone", .gone), ("suspect", .suspect), ("stale", .stale)]

  static func run(_ arguments: [String]) throws {
    let options = try Options(arguments, values: ["state", "since", "config", "app"], flags: ["json"])
    try options.refuseOperands()
    let word = try options.required("state", states.map(\.word).joined(separator: ", "))
    guard let state = states.first(where: { $0.word == word })?.state else {
      throw Options.refusal("state", word, of: states.map(\.word))
    }
    let now = Int64(Date().timeIntervalSince1970 * 1000)
    let since = try options["since"].map { text throws(CommandFailure) in try LetterFilter.time(text, now: now) } ?? 0
    let session = try RegistrySession(options, isReading: true)
    let app = try session.app(options)
    var cursor: Int64 = 0
    while true {
      let records = try session.store.devices(app: app, in: state, since: since, after: cursor, limit: portion)
      for record in records { Terminal.print(options.has("json") ? record.json : Array(record.line.utf8)) }
      guard records.count == portion, let last = records.last else { return }
      cursor = last.id
    }
  }
}

extension DeviceRecord {
  /// For a list: since when, why, which token.
  fileprivate var line: String {
    let since = markedAt.map { String(decoding: Timestamp.text($0), as: UTF8.self) } ?? "-"
    let why = reason.map { String(printing: $0) } ?? "-"
    return [since, why, String(printing: registration), (device.kind ?? .alert).name, String(printing: device.token)]
      .joined(separator: "  ")
  }
}
