import DeviceRegistry
import PushCore
import Settings

/// The configured applications, as the doors look them up.
struct GatewayApplications {
  struct App {
    var id: [UInt8]
    var defaultPriority: Priority
    var limits: RequestLimits
    var isUPMC: Bool
    /// Platforms that the application has credentials for.
    var platforms: Set<Platform>
    /// Credentials, senders and webhooks, which operators can pause.
    var pausable: [ControlSubject]
    /// Names of the application's packages and bundles.
    var packages: Set<[UInt8]>
  }

  let limits: RequestLimits
  private let apps: [[UInt8]: App]

  init(_ configuration: Configuration) {
    limits = configuration.limits
    var apps: [[UInt8]: App] = [:]
    for app in configuration.apps {
      let sets = app.sets.map(\.set)
      let packages = sets.flatMap { $0.apns.map(\.topic) + [$0.fcm?.package].compactMap(\.self) }
      let id = Array(app.id.utf8)
      apps[id] = App(
        id: id, defaultPriority: app.defaultPriority, limits: configuration.limits(of: app), isUPMC: app.isUPMC,
        platforms: Set(Platform.allCases.filter { platform in sets.contains { $0.reaches(platform) } }),
        pausable: app.pausable.keys.sorted().map { .credential(Array($0.utf8)) }
          + app.webhooks.map { .webhook(Array("\(app.id)/\($0.name)".utf8)) },
        packages: Set((packages + [app.id]).map { Array($0.utf8) }))
    }
    self.apps = apps
  }

  subscript(id: [UInt8]) -> App? { apps[id] }

  /// True if the application is configured, and the key is for it.
  func has(_ id: [UInt8], of key: GatewayKey) -> Bool { apps[id] != nil && key.apps.contains(id) }

  /// True if the list has every configured application.
  func areAll(in ids: [[UInt8]]) -> Bool { Set(apps.keys).isSubset(of: ids) }

  /// The key's only application, or the one of several that `name` names.
  func only(of key: GatewayKey, _ name: [UInt8]?) -> App? {
    if let name, let app = named(name, of: key) { return app }
    // Most keys are for one application, which needs no array.
    if key.apps.count == 1 { return apps[key.apps[0]] }
    let known = key.apps.compactMap { apps[$0] }
    return known.count == 1 ? known[0] : nil
  }

  /// For FCM v1: the key's application with this id. A key for one application works with any project name.
  func app(ofProject project: [UInt8], _ key: GatewayKey) -> App? {
    if key.apps.contains(project) { return apps[project] }
    return key.apps.count == 1 ? apps[key.apps[0]] : nil
  }

  /// Finds an application by its id, package or bundle.
  func named(_ name: [UInt8], of key: GatewayKey) -> App? {
    key.apps.compactMap { apps[$0] }.first { $0.packages.contains(name) }
  }

  /// The application that a request is for: the key's only one, or the one that `restricted_package_name` names.
  func app(of key: GatewayKey, _ document: JSONDocument) throws(Rejection) -> App {
    if let app = only(of: key, nil) { return app }
    let known = key.apps.compactMap { apps[$0] }
    guard !known.isEmpty else { throw Rejection(.invalidParameters, "the key's applications are no longer configured") }
    guard let package = document.value("restricted_package_name", of: document.root).map(document.string) else {
      throw Rejection(.invalidParameters, "restricted_package_name: missing, the key is for \(known.count) applications")
    }
    guard let app = known.first(where: { $0.packages.contains(package) }) else {
      throw Rejection(.invalidPackageName, "restricted_package_name: the key is for no application with this name")
    }
    return app
  }
}
