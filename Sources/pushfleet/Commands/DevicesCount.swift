import DeviceRegistry
import PushCore

enum DevicesCount {
  static func run(_ options: Options) throws {
    let session = try RegistrySession(options, isReading: true)
    let app = try session.configuration.givenApp(options)
    let counts = try session.store.deviceCounts(app: app)
    let table = TextTable(
      [
        (.figure("DEVICES"), { Figures.count($0.count) }), (.text("STATE", least: 7), { $0.state.word }),
        (.text("KIND", least: 13, rank: 1), { $0.kind.name }), (.text("PLATFORM", least: 8, rank: 2), { $0.platform.word }),
        (.name("APP", least: 12, rank: 3), { String(printing: $0.app) }),
      ], of: counts)
    options.print(counts.map(\.json.line), text: counts.isEmpty ? "no devices" : table.text(width: Terminal.width))
  }
}

extension DeviceCount {
  fileprivate var json: JSONObject {
    ["app": app, "platform": platform.word, "kind": kind.name, "state": state.word, "devices": count]
  }
}
