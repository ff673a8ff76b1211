import DeviceRegistry
import Foundation
import PushCore
import Settings

struct RegistrySession {
  let configuration: Configuration
  let store: DeviceStore
  /// Why the command does what it does, if the user says so.
  let reason: [UInt8]?

  /// - Parameters:
  ///   - isReading: true if the command only reads or changes existing data; a missing registry is then not created.
  ///   - option: the option with the reason.
  /// - Throws: status 78 if no registry is configured or it is unusable, 69 if it is unreachable.
  init(
    _ options: Options, isReading: Bool = true, store settings: StoreOptions = StoreOptions(),
    reasonIn option: String = "reason"
  ) throws {
    reason = try Self.reason(options, in: option)
    configuration = try options.configuration()
    guard let location = configuration.registry else {
      throw ConfigurationError(key: "registry", problem: "is missing: name one, such as \"sqlite:registry.db\"")
    }
    store = try Self.open(location, configuration, isReading: isReading, settings)
  }

  static func open(
    _ location: RegistryLocation, _ configuration: Configuration, isReading: Bool, _ settings: StoreOptions = StoreOptions()
  ) throws(RegistryError) -> DeviceStore {
    var settings = settings
    settings.create = !isReading
    return try openRegistry(location, options: settings, limits: configuration.registryLimits)
  }

  static var now: Int64 { Int64(Date().timeIntervalSince1970 * 1000) }

  /// Applies a change in the JSON form that backends send, as if it had come through the registry queue.
  /// - Throws: status 65 with the reason if the change is refused; with `--json` after printing the answer.
  func apply(_ change: JSONObject, _ options: Options) throws -> ChangeAnswer {
    let answer: ChangeAnswer
    var parsed = RegistryChange.parse(change.line, defaultApp: nil, limits: configuration.registryLimits)
    if case .success(.register(let registration)) = parsed, registration.platform == .webpush {
      let rules = try configuration.subscriptionRules()
      parsed = parsed.flatMap { $0.following(rules) }
    }
    switch parsed {
    case .failure(let refusal): answer = refusal.answer
    case .success(let change): answer = try store.apply([change], now: Self.now).first ?? .done
    }
    if options.asJSON { Terminal.print(answer.json) }
    if case .refused(let error, let reason) = answer { throw CommandFailure(.badInput, "\(error.rawValue): \(reason)") }
    return answer
  }
}

extension Configuration {
  /// The application that `--app` names, or the only configured one; else nil.
  func application(_ options: Options) throws(CommandFailure) -> [UInt8]? {
    guard let app = options["app"] else { return apps.count == 1 ? Array(apps[0].id.utf8) : nil }
    guard apps.contains(where: { $0.id == app }) else { throw noApplication(app) }
    return Array(app.utf8)
  }

  /// The application that `--app` names; nil without `--app`.
  func givenApp(_ options: Options) throws(CommandFailure) -> [UInt8]? { options["app"] == nil ? nil : try app(options) }

  func app(_ options: Options) throws(CommandFailure) -> [UInt8] {
    guard let app = try application(options) else { throw severalApplications }
    return app
  }

  var severalApplications: CommandFailure {
    CommandFailure(.usage, "--app must name one of \(apps.map(\.id).joined(separator: ", "))")
  }

  func noApplication(_ app: String) -> CommandFailure {
    let meant = Spelling.suggestion(for: app, among: apps.map(\.id))
    return CommandFailure(.usage, "--app: the configuration has no application \(SafeText.value(app))\(meant)")
  }
}

extension ExitStatus {
  init(of error: any Error) {
    switch error {
    case RegistryError.refused: self = .badInput
    // Retrying doesn't help: an operator must act.
    case RegistryError.unusable, is ConfigurationError: self = .configuration
    default: self = .unavailable
    }
  }
}
