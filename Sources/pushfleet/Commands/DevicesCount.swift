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
    let app = options["app"] == nil ? nil : try session.app(options)
    let counts = try session.store.deviceCounts(app: app)
    guard !options.has("json") else { return counts.forEach { Terminal.print($0.json) } }
    guard !counts.isEmpty else { return Terminal.print("no devices") }
    let rows = counts.map {
      [Figures.count($0.count), $0.state.word, $0.kind.name, $0.platform.word, String(printing: $0.app)]
    }
    Terminal.print(TextTable(columns, rows: rows).text(width: TerminalWidth.ofOutput ?? .max))
  }
}

extension DeviceCount {
  fileprivate var json: [UInt8] {
    var line = JSONObjectWriter()
    line.set("app", app)
    line.set("platform", platform.word)
    line.set("kind", kind.name)
    line.set("state", state.word)
    line.set("devices", count)
    return line.closed()
  }
}
