import Providers
import PushCore
import Reactor

/// What a shard works with, loaded on the main thread: at the start, and again whenever files have changed.
package struct ShardSetup: Sendable {
  let configuration: Configuration
  let credentials: [CredentialPlace: LoadedCredential]
  /// Never empty.
  let brokers: [BrokerAddress]

  package init(
    configuration: Configuration, credentials: [CredentialPlace: LoadedCredential], brokers: [BrokerAddress]
  ) {
    self.configuration = configuration
    self.credentials = credentials
    self.brokers = brokers
  }
}

/// A shard's pools: one for each credential with its settings, whichever applications and senders it serves.
final class PoolSet {
  private(set) var apps: [Pipeline.App] = []
  /// Only ever grows: what was begun with a pool that nobody uses any longer still finishes there.
  private(set) var lanes: [PoolLanes] = []
  private var recipes: [PoolRecipe] = []
  private var names: [ObjectIdentifier: String] = [:]
  private let host: any ShardHost
  private let shards: Int
  private weak var handler: (any PoolHandler)?
  private weak var observer: (any PoolObserver)?

  init(_ setup: ShardSetup, host: any ShardHost) {
    self.host = host
    shards = setup.configuration.shards
    for app in setup.configuration.apps {
      var entry = Pipeline.App(
        id: Array(app.id.utf8), packages: app.packages.map { Array($0.utf8) }, routes: Pipeline.Routes())
      for sender in app.senders.keys { entry.senders[Array(sender.utf8)] = Pipeline.Routes() }
      apps.append(entry)
    }
    _ = reload(setup)
  }

  func connect(handler: any PoolHandler, observer: any PoolObserver) {
    self.handler = handler
    self.observer = observer
    for lane in lanes { connect(lane.provider.base) }
  }

  private func connect(_ pool: ProviderPool) {
    pool.handler = handler
    pool.observer = observer
  }

  /// For logs.
  func name(of pool: ProviderPool) -> String { names[ObjectIdentifier(pool)] ?? "unknown" }

  /// When certificates end: the pool's name and unix seconds.
  var expiries: [(name: String, notAfter: Int64)] {
    lanes.compactMap { lane in
      guard case .apns(let pool) = lane.provider, let end = pool.credentialNotAfter else { return nil }
      return (name(of: pool), end)
    }
  }

  // MARK: taking over a setup

  /// Takes over the credentials and settings of the applications and senders that were there from the start; what is in flight
  /// finishes with the old ones.
  ///
  /// A pool goes with its users where none of them stays as it is. Users that then want something else than their pool is are
  /// served by the pool that is, made where there is none.
  /// - Returns: the names of what changed.
  func reload(_ setup: ShardSetup) -> [String] {
    let uses = uses(in: setup)
    let before = uses.map { $0.pool.map { recipes[$0] } }
    for pool in lanes.indices {
      let wanted = uses.filter { $0.pool == pool }.compactMap(\.recipe)
      if let next = wanted.first, !wanted.contains(recipes[pool]), !recipes.contains(next) { follow(next, pool) }
    }
    var changed: [String] = []
    for (use, earlier) in zip(uses, before) {
      let isTuned = use.settings != use.routes.apnsRoute(for: use.place.reach)?.settings
      if use.recipe != earlier || isTuned { changed.append(use.place.name) }
      use.assign(pool: use.recipe.map { pool(for: $0, of: use) })
    }
    for use in uses { use.routes.apns = nil }
    for use in uses where use.isFirst { use.routes.apns = use.routes.apnsRoute(for: use.place.reach) }
    return changed
  }

  private func uses(in setup: ShardSetup) -> [PoolUse] {
    var uses: [PoolUse] = []
    for app in setup.configuration.apps {
      guard let entry = apps.first(where: { $0.id.elementsEqual(app.id.utf8) }) else { continue }
      for (sender, set) in app.sets {
        guard let routes = sender.map({ entry.senders[Array($0.utf8)] }) ?? entry.routes else { continue }
        uses += PoolUse.all(of: set, app, sender, routes, setup.credentials, shards: shards)
      }
    }
    return uses
  }

  /// The pool keeps what waits for it and its connections' place in line; new connections are made the new way.
  private func follow(_ recipe: PoolRecipe, _ pool: Int) {
    let old = recipes[pool]
    recipes[pool] = recipe
    let isReplaced = old.credential !== recipe.credential
    switch (lanes[pool].provider, recipe.credential.value) {
    case (.apns(let pool), .apns(let credentials)):
      if isReplaced || old.requestTimeout != recipe.requestTimeout {
        pool.replaceCredentials(credentials, requestTimeout: recipe.requestTimeout)
      }
    case (.fcm(let pool), .fcm(let credentials)):
      if isReplaced { pool.replaceCredentials(credentials) }
      if old.messagesPerMinute != recipe.messagesPerMinute { pool.changePace(messagesPerMinute: recipe.messagesPerMinute) }
    // A place's reach decides which of the two it is.
    default: break
    }
  }

  private func pool(for recipe: PoolRecipe, of use: PoolUse) -> Int {
    if let index = use.pool, recipes[index] == recipe { return index }
    if let index = recipes.firstIndex(of: recipe) { return index }
    switch recipe.credential.value {
    case .apns(let credentials):
      var settings = APNsPool.Settings()
      settings.requestTimeout = recipe.requestTimeout
      let pool = APNsPool(
        credentials: credentials, time: host.time, dialer: host, settings: settings, tokens: host.providerTokens)
      lanes.append(PoolLanes(.apns(pool)))
    case .fcm(let credentials):
      var settings = FCMPool.Settings()
      settings.messagesPerMinute = recipe.messagesPerMinute
      let pool = FCMPool(credentials: credentials, time: host.time, dialer: host, settings: settings)
      lanes.append(PoolLanes(.fcm(pool)))
    }
    recipes.append(recipe)
    let pool = lanes[lanes.count - 1].pool
    names[ObjectIdentifier(pool)] = use.place.name
    connect(pool)
    return lanes.count - 1
  }
}
