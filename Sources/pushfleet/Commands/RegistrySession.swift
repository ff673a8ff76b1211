import DeviceRegistry
import Foundation
import PushCore
import Worker

/// A command's way to the registry that the configuration names.
struct RegistrySession {
  let configuration: Configuration
  let store: any DeviceStore

  /// - Parameter isReading: the command only reads, or changes what must be there: a registry that doesn't exist isn't made.
  /// - Throws: status 78 when no registry is configured or it can't be used, 69 when it can't be reached now.
  init(_ options: Options, isReading: Bool, store settings: StoreOptions = StoreOptions()) throws {
    configuration = try options.configuration()
    guard let text = configuration.registry else {
      throw ConfigurationError(key: "registry", problem: "is missing: name one, such as \"sqlite:registry.db\"")
    }
    let location: RegistryLocation
    do throws(RegistryError) { location = try RegistryLocation(parsing: text) } catch {
      throw ConfigurationError(key: "registry", problem: "cannot be used: \(error)")
    }
    var settings = settings
    settings.create = !isReading
    store = try openRegistry(location, options: settings, limits: configuration.registryLimits)
  }

  /// The application that `--app` names, or the only one that is configured; nil where neither is.
  func optionalApp(_ options: Options) throws(CommandFailure) -> [UInt8]? { try configuration.application(options) }

  func app(_ options: Options) throws(CommandFailure) -> [UInt8] {
    guard let app = try optionalApp(options) else {
      throw CommandFailure(
        .usage, "--app must name one of \(configuration.apps.map(\.id).joined(separator: ", "))")
    }
    return app
  }

  /// Unix milliseconds.
  static var now: Int64 { Int64(Date().timeIntervalSince1970 * 1000) }

  /// Applies a change as if it had come by the registry queue.
  /// - Throws: status 65 with the reason when it is refused; with `--json` after printing the answer.
  func apply(_ change: ChangeText, _ options: Options) throws -> ChangeAnswer {
    let answer: ChangeAnswer
    switch RegistryChange.parse(change.json, defaultApp: nil, limits: configuration.registryLimits) {
    case .failure(let refusal): answer = refusal.answer
    case .success(let change): answer = try store.apply([change], now: Self.now).first ?? .done
    }
    if options.has("json") { Terminal.print(answer.json) }
    if case .refused(let error, let reason) = answer { throw CommandFailure(.badInput, "\(error.rawValue): \(reason)") }
    return answer
  }
}

extension Configuration {
  /// The application that `--app` names, or the only one that is configured; nil where neither is.
  func application(_ options: Options) throws(CommandFailure) -> [UInt8]? {
    guard let app = options["app"] else { return apps.count == 1 ? Array(apps[0].id.utf8) : nil }
    guard apps.contains(where: { $0.id == app }) else { throw noApplication(app) }
    return Array(app.utf8)
  }

  func noApplication(_ app: String) -> CommandFailure {
    let meant = Spelling.suggestion(for: app, among: apps.map(\.id))
    return CommandFailure(.usage, "--app: the configuration has no application \(Shown.value(app))\(meant)")
  }
}

/// A change of the registry, put together from a command's words, in the form that backends send.
struct ChangeText {
  private var line = JSONObjectWriter()

  init(_ operation: String, app: [UInt8]) {
    line.set("op", operation)
    line.set("app", app)
  }

  mutating func set(_ field: String, _ text: String?) {
    if let text { line.set(field, text) }
  }

  mutating func set(_ field: String, _ texts: [String]) { line.set(field, texts.map { Array($0.utf8) }) }

  var json: [UInt8] { line.closed() }
}

extension ExitStatus {
  init(of error: RegistryError) {
    switch error {
    case .refused: self = .badInput
    case .unavailable, .fenced: self = .unavailable
    // An operator must act: trying again is pointless.
    case .unusable: self = .configuration
    }
  }
}
