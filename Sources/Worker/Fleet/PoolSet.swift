import Providers
import PushCore
import Reactor

/// A shard's pools: one for each credential, whichever application, sender and environment it belongs to.
final class PoolSet {
  private(set) var apps: [Pipeline.App] = []
  private(set) var lanes: [PoolLanes] = []
  private var names: [ObjectIdentifier: String] = [:]
  private var loaded: [LoadedCredential] = []
  private let surroundings: LoopSurroundings
  private let shards: Int

  /// - Throws: naming the setting whose key, certificate or CA file cannot be used.
  init(_ configuration: Configuration, loop: EventLoop) throws(ConfigurationError) {
    surroundings = LoopSurroundings(loop: loop)
    shards = configuration.shards
    for app in configuration.apps {
      var entry = Pipeline.App(
        id: Array(app.id.utf8), packages: app.packages.map { Array($0.utf8) },
        routes: try routes(app.credentials, of: app, path: "apps.\(app.id)"))
      for (sender, set) in app.senders.sorted(by: { $0.key < $1.key }) {
        entry.senders[Array(sender.utf8)] = try routes(set, of: app, path: "apps.\(app.id).senders.\(sender)")
      }
      apps.append(entry)
    }
  }

  func connect(handler: any PoolHandler, observer: any PoolObserver) {
    for lane in lanes {
      lane.provider.base.handler = handler
      lane.provider.base.observer = observer
    }
  }

  /// For logs.
  func name(of pool: any Pool) -> String { names[ObjectIdentifier(pool)] ?? "unknown" }

  /// When certificates end: the pool's name and unix seconds.
  var expiries: [(name: String, notAfter: Int64)] {
    lanes.compactMap { lane in
      guard case .apns(let pool) = lane.provider, let end = pool.credentialNotAfter else { return nil }
      return (name(of: pool), end)
    }
  }

  /// Takes over the credentials whose files or settings have changed; what is in flight finishes with the old ones.
  ///
  /// - Returns: the names of the pools that changed.
  /// - Throws: leaving every pool as it was.
  func reload(_ configuration: Configuration) throws(ConfigurationError) -> [String] {
    var fresh: [String: CredentialSet] = [:]
    for app in configuration.apps {
      fresh["apps.\(app.id)"] = app.credentials
      for (sender, set) in app.senders { fresh["apps.\(app.id).senders.\(sender)"] = set }
    }
    var changes: [(pool: Int, credential: LoadedCredential)] = []
    for (index, old) in loaded.enumerated() {
      guard let set = fresh[old.path], let next = try old.successor(in: set), next.fingerprint != old.fingerprint else {
        continue
      }
      changes.append((index, next))
    }
    for (index, credential) in changes {
      loaded[index] = credential
      switch (lanes[index].provider, credential.value) {
      case (.apns(let pool), .apns(let credentials)): pool.replaceCredentials(credentials)
      case (.fcm(let pool), .fcm(let credentials)): pool.replaceCredentials(credentials)
      default: continue
      }
    }
    return changes.map { name(of: lanes[$0.pool].pool) }
  }

  private func routes(_ set: CredentialSet, of app: AppConfiguration, path: String) throws(ConfigurationError)
    -> Pipeline.Routes
  {
    let routes = Pipeline.Routes(fcmSettings: FCMSettings(defaultPriority: app.defaultPriority))
    for apns in set.apns {
      let settings = APNsSettings(topic: apns.topic, defaultPriority: app.defaultPriority)
      let route = Pipeline.APNsRoute(pool: try pool(.apns(apns), path: path), settings: settings)
      if routes.apns == nil { routes.apns = route }
      switch apns.environment {
      case .production: routes.production = route
      case .sandbox: routes.sandbox = route
      }
    }
    if let fcm = set.fcm { routes.fcm = try pool(.fcm(fcm), path: path) }
    return routes
  }

  /// The pool of a credential; senders that share one share its pool.
  private func pool(_ source: LoadedCredential.Source, path: String) throws(ConfigurationError) -> Int {
    if let index = loaded.firstIndex(where: { $0.source == source }) { return index }
    let credential = try LoadedCredential(source, path: path)
    loaded.append(credential)
    switch credential.value {
    case .apns(let credentials):
      var settings = APNsPool.Settings()
      if case .apns(let apns) = source { settings.requestTimeout = Double(apns.timeout) }
      lanes.append(PoolLanes(.apns(APNsPool(credentials: credentials, surroundings: surroundings, settings: settings))))
    case .fcm(let credentials):
      var settings = FCMPool.Settings()
      if case .fcm(let fcm) = source { settings.messagesPerMinute = fcm.messagesPerMinute }
      settings.messagesPerMinute = max(settings.messagesPerMinute / shards, 1)
      lanes.append(PoolLanes(.fcm(FCMPool(credentials: credentials, surroundings: surroundings, settings: settings))))
    }
    names[ObjectIdentifier(lanes[lanes.count - 1].pool)] = credential.name
    return lanes.count - 1
  }
}
