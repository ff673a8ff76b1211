import DeviceRegistry
import Foundation
import PushCore
import Settings

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
    do throws(RegistryError) { _ = try RegistryLocation(parsing: text) } catch {
      throw ConfigurationError(key: "registry", problem: "cannot be used: \(error)")
    }
    store = try Self.open(text, configuration, isReading: isReading, settings)
  }

  /// - Parameter text: where it is, as the configuration has it.
  static func open(
    _ text: String, _ configuration: Configuration, isReading: Bool, _ settings: StoreOptions = StoreOptions()
  ) throws(RegistryError) -> any DeviceStore {
    var settings = settings
    settings.create = !isReading
    return try openRegistry(try RegistryLocation(parsing: text), options: settings, limits: configuration.registryLimits)
  }

  /// The application that `--app` names, or the only one that is configured; nil where neither is.
  func optionalApp(_ options: Options) throws(CommandFailure) -> [UInt8]? { try configuration.application(options) }

  /// The application that `--app` names; nil without it.
  func givenApp(_ options: Options) throws(CommandFailure) -> [UInt8]? { options["app"] == nil ? nil : try app(options) }

  func app(_ options: Options) throws(CommandFailure) -> [UInt8] {
    guard let app = try optionalApp(options) else { throw configuration.severalApplications }
    return app
  }

  /// Unix milliseconds.
  static var now: Int64 { Int64(Date().timeIntervalSince1970 * 1000) }

  /// Applies a change, in the form that backends send, as if it had come by the registry queue.
  /// - Throws: status 65 with the reason when it is refused; with `--json` after printing the answer.
  func apply(_ change: JSONObject, _ options: Options) throws -> ChangeAnswer {
    let answer: ChangeAnswer
    switch RegistryChange.parse(change.line, defaultApp: nil, limits: configuration.registryLimits) {
    case .failure(let refusal): answer = refusal.answer
    case .success(let change): answer = try store.apply([change], now: Self.now).first ?? .done
    }
    if options.asJSON { Terminal.print(answer.json) }
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

  var severalApplications: CommandFailure {
    CommandFailure(.usage, "--app must name one of \(apps.map(\.id).joined(separator: ", "))")
  }

  func noApplication(_ app: String) -> CommandFailure {
    let meant = Spelling.suggestion(for: app, among: apps.map(\.id))
    return CommandFailure(.usage, "--app: the configuration has no application \(Shown.value(app))\(meant)")
  }
}

extension ExitStatus {
  init(of error: any Error) {
    switch error {
    case RegistryError.refused: self = .badInput
    // An operator must act: trying again is pointless.
    case RegistryError.unusable, is ConfigurationError: self = .configuration
    default: self = .unavailable
    }
  }
}
