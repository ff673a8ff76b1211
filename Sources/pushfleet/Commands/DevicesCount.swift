import DeviceRegistry
import PushCore
import Reactor

/// `devices count`: how many there are, by application, platform, kind and state.
enum DevicesCount {
  private static let columns: [TextTable.Column] = [
    .figure("DEVICES"), .text("STATE", least: 7), .text("KIND", least: 13, rank: 1), .text("PLATFORM", least: 8, rank: 2),
    .name("APP", least: 12, rank: 3),
  ]

  static func run(_ options: Options) throws {
    let session = try RegistrySession(options, isReading: true)
    let app = try session.givenApp(options)
    let counts = try session.store.deviceCounts(app: app)
    guard !options.asJSON else { return counts.forEach { Terminal.print($0.json) } }
    guard !counts.isEmpty else { return Terminal.print("no devices") }
    let rows = counts.map {
      [Figures.count($0.count), $0.state.word, $0.kind.name, $0.platform.word, String(printing: $0.app)]
    }
    Terminal.print(TextTable(columns, rows: rows).text(width: Terminal.width))
  }
}

extension DeviceCount {
  fileprivate var json: JSONObject {
    ["app": app, "platform": platform.word, "kind": kind.name, "state": state.word, "devices": count]
  }
}
