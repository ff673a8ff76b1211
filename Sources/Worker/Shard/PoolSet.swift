import Delivery
import Providers
import PushCore
import Reactor
import Settings
import Wire

/// A shard's applications and provider pools. Each credential with its settings has a pool; within it, each application has an
/// account, whatever its senders.
final class PoolSet {
  let apps = Applications()
  /// By number. An unused account finishes its pushes, then it is closed and its number is reused.
  private(set) var accounts: [PoolAccount] = []
  /// By account number; nil for closed accounts.
  private var recipes: [PoolRecipe?] = []
  private var numbers: [PoolRecipe: Int] = [:]
  private var free: [Int] = []
  private var shared: [PoolRecipe: ProviderPool] = [:]
  /// Pools without accounts that still have pushes in flight.
  private var left: [ProviderPool] = []
  private var setups: [String: ApplicationSetup] = [:]
  private var changed: ArraySlice<ApplicationSetup> = []
  private var removed: [String] = []
  /// Called when a push has opened a pool for a push service.
  var onOpened: () -> Void = {}
  /// Names of applied changes since the last `begin`.
  private(set) var changes: [String] = []
  private let host: any ShardHost
  /// Shards of the fleet that share FCM's quotas.
  private var sharers: Int
  private weak var handler: (any PoolHandler)?
  private let answerTimes = Platform.allCases.map { _ in Latencies(bounds: PushTimes.answerBounds) }
  private weak var observer: (any PoolObserver)?

  init(_ setup: ShardSetup, host: any ShardHost) {
    self.host = host
    sharers = setup.configuration.shards
    _ = reload(setup)
  }

  func connect(handler: any PoolHandler, observer: any PoolObserver) {
    self.handler = handler
    self.observer = observer
    for account in accounts { connect(account.pool) }
  }

  private func connect(_ pool: ProviderPool) {
    pool.handler = handler
    pool.observer = observer
    pool.answerTimes = answerTimes(of: pool.platform)
  }

  func answerTimes(of provider: Platform) -> Latencies { answerTimes[Int(provider.rawValue)] }

  /// For each metric series, the providers with which its application is configured.
  var providersOfSeries: [Set<Platform>] {
    var providers = [Set<Platform>](repeating: [], count: apps.series.names.count)
    for app in apps.indices.prefix(AppSeries.most) {
      for pool in apps[app].pools {
        providers[apps.series.number(of: app)].insert(accounts[pool].pool.platform)
      }
    }
    return providers
  }

  /// Ends of certificates, soonest first.
  private(set) var expiries: [CertificateExpiry] = []

  private func noteExpiries() {
    expiries = zip(accounts, recipes).compactMap { account, recipe in
      guard recipe != nil, case .apns(let apns) = account.pool.kind, let end = apns.credentials.notAfter else { return nil }
      return .init(name: account.name, notAfter: end)
    }
    expiries.sort { ($0.notAfter, $0.name) < ($1.notAfter, $1.name) }
  }

  // MARK: applying a setup

  /// Applies applications, senders, credentials and settings; pushes in flight finish with the old ones.
  ///
  /// If all users of a pool want the same new recipe, the pool changes to it. Otherwise users get an existing pool with their
  /// recipe, or a new one.
  /// - Returns: the names of what changed.
  func reload(_ setup: ShardSetup) -> [String] {
    begin(setup)
    while !advance(.max) {}
    return changes
  }

  /// Determines the changes without applying any. Drops unapplied changes of an earlier setup.
  func begin(_ setup: ShardSetup) {
    changed = setup.apps.filter { setups[$0.settings.id] !== $0 }[...]
    let ids = Set(setup.apps.map(\.settings.id))
    removed = setups.keys.filter { !ids.contains($0) }.sorted()
    changes = []
  }

  /// Applies at most `most` of the changed applications.
  /// - Returns: true if nothing is left.
  func advance(_ most: Int) -> Bool {
    for id in removed.prefix(most) { remove(id) }
    let rest = most - min(most, removed.count)
    removed.removeFirst(min(most, removed.count))
    let portion = changed.prefix(rest)
    changed.removeFirst(portion.count)
    take(portion)
    guard changed.isEmpty, removed.isEmpty else { return false }
    noteExpiries()
    return true
  }

  private func remove(_ id: String) {
    changes.append("\(id) (removed)")
    setups[id] = nil
    if let index = apps.index(of: Array(id.utf8)) { apps.remove(index) }
  }

  private func take(_ changed: ArraySlice<ApplicationSetup>) {
    var uses: [PoolUse] = []
    var indices: [Int] = []
    var added: Set<String> = []
    for app in changed {
      let id = app.settings.id
      if setups.updateValue(app, forKey: id) == nil {
        added.insert(id)
        changes.append("\(id) (added)")
      } else if let index = apps.index(of: Array(id.utf8)), apps[index].rights != AppRights(app.settings) {
        changes.append("\(id) rights")
      }
      let (index, ways) = apps.put(app.settings, app.credentials)
      indices.append(index)
      uses += ways
    }
    let before = uses.map { use in use.pool.flatMap { recipes[$0] } }
    follow(uses, of: Set(indices))
    for (use, earlier) in zip(uses, before) {
      let isTuned = use.settings != use.routes.apnsRoute(for: use.place.reach)?.settings
      if case .webpush = use.place.reach {
        if route(use), !added.contains(use.place.app) { changes.append(use.place.name) }
        continue
      }
      if use.recipe != earlier || isTuned, !added.contains(use.place.app) { changes.append(use.place.name) }
      use.assign(pool: use.recipe.map { pool(for: $0, named: use.place.name) })
    }
    PoolUse.chooseFirst(uses)
    for index in indices { apps.rerouted(index) }
  }

  /// Changes a pool's recipe if all its users want the same new one. Otherwise, its waiting pushes keep their credential.
  private func follow(_ uses: [PoolUse], of changed: Set<Int>) {
    var wanted: [Int: [PoolRecipe?]] = [:]
    for use in uses { if let pool = use.pool { wanted[pool, default: []].append(use.recipe) } }
    for (pool, wanted) in wanted.sorted(by: { $0.key < $1.key }) {
      guard apps.users(of: pool).isSubset(of: changed), let recipe = recipes[pool], Set(wanted).count == 1,
        let next = wanted[0], next != recipe, numbers[next] == nil
      else { continue }
      numbers[recipe] = nil
      numbers[next] = pool
      recipes[pool] = next
      follow(from: recipe, to: next, pool)
    }
  }

  /// The account keeps its waiting pushes; new connections use the new recipe. A pool with one account is kept.
  private func follow(from old: PoolRecipe, to recipe: PoolRecipe, _ number: Int) {
    let pool = accounts[number].pool
    switch (pool.kind, recipe.credential.value) {
    case (.apns(let apns), .apns(let credentials)):
      guard old.shared != recipe.shared else { return }
      if pool.openAccounts == 1, shared[recipe.shared] == nil {
        shared[old.shared] = nil
        shared[recipe.shared] = pool
        apns.replaceCredentials(credentials, requestTimeout: recipe.requestTimeout)
      } else {
        let account = accounts[number]
        accounts[number] = apnsAccount(credentials, recipe, name: account.name)
        close(account, of: old)
      }
    case (.fcm(let fcm), .fcm(let credentials)):
      if old.credential !== recipe.credential { fcm.replaceCredentials(credentials) }
      if old.messagesPerMinute != recipe.messagesPerMinute { pool.changePace(messagesPerMinute: share(of: recipe)) }
    // The reach of the credential's place determines the provider, so the kinds always match.
    default: break
    }
  }

  // MARK: web push

  /// Keeps the pools of push services that are open; they use the new keys from now on.
  /// - Returns: true if something has changed.
  private func route(_ use: PoolUse) -> Bool {
    let old = use.routes.webpush
    use.assign(pool: nil)
    guard let recipe = use.recipe, case .webpush(let credentials) = recipe.credential.value else {
      use.routes.webpush = nil
      return old != nil
    }
    guard let old else {
      use.routes.webpush = WebPushRoute(
        recipe, credentials,
        open: { [unowned self, name = use.place.name] in pool(for: $0, named: name) },
        onChange: { [unowned self, weak routes = use.routes, id = Array(use.place.app.utf8)] in
          routes?.listPools()
          if let index = apps.index(of: id) { apps.rerouted(index) }
          onOpened()
        })
      return true
    }
    guard old.recipe != recipe else { return false }
    old.follow(recipe, credentials)
    use.routes.listPools()
    for (origin, number) in old.origins {
      let next = recipe.of(origin)
      if let earlier = recipes[number] { numbers[earlier] = nil }
      recipes[number] = next
      numbers[next] = number
      if case .webpush(let provider) = accounts[number].pool.kind { provider.replaceCredentials(credentials) }
    }
    return true
  }

  private func pool(for recipe: PoolRecipe, named name: String) -> Int {
    if let number = numbers[recipe] { return number }
    let account: PoolAccount
    switch recipe.credential.value {
    case .apns(let credentials): account = apnsAccount(credentials, recipe, name: name)
    case .fcm(let credentials):
      var settings = PoolSettings.fcm
      settings.messagesPerMinute = share(of: recipe)
      account = pool(.fcm(FCMProvider(credentials, time: host.time, dialer: host)), settings).openAccount(name)
    case .webpush(let credentials):
      guard let origin = recipe.origin else { preconditionFailure("web push has a pool for each push service") }
      let webpush = WebPushProvider(credentials, origin: origin, time: host.time)
      let isStranger = credentials.hosts.addresses(of: origin.host) == .publicOfStranger
      account = pool(.webpush(webpush), isStranger ? .webpushOfStranger : .webpush).openAccount("\(name) \(origin.authority)")
    }
    let number = free.popLast() ?? accounts.count
    if number == accounts.count {
      accounts.append(account)
      recipes.append(recipe)
    } else {
      accounts[number] = account
      recipes[number] = recipe
    }
    numbers[recipe] = number
    return number
  }

  /// An account in the existing pool for the recipe, or in a new one.
  private func apnsAccount(_ credentials: APNsCredentials, _ recipe: PoolRecipe, name: String) -> PoolAccount {
    if let pool = shared[recipe.shared] { return pool.openAccount(name) }
    var settings = PoolSettings.apns
    settings.requestTimeout = recipe.requestTimeout
    let apns = APNsProvider(credentials, time: host.time, isSandbox: recipe.environment == .sandbox)
    let pool = pool(.apns(apns), settings)
    shared[recipe.shared] = pool
    return pool.openAccount(name)
  }

  private func pool(_ kind: ProviderKind, _ settings: PoolSettings) -> ProviderPool {
    let pool = ProviderPool(kind, settings: settings, time: host.time, dialer: host)
    connect(pool)
    return pool
  }

  // MARK: quotas

  /// Sets the number of shards that share the quotas.
  /// - Returns: false if the number is unchanged.
  func divideQuotas(among sharers: Int) -> Bool {
    guard sharers != self.sharers else { return false }
    self.sharers = sharers
    for (account, recipe) in zip(accounts, recipes) {
      if account.pool.isPaced, let recipe { account.pool.changePace(messagesPerMinute: share(of: recipe)) }
    }
    return true
  }

  var hasQuotas: Bool { accounts.contains { $0.pool.isPaced } }

  /// Messages per minute, at least one.
  private func share(of recipe: PoolRecipe) -> Int { max(recipe.messagesPerMinute / sharers, 1) }

  // MARK: unused pools

  /// Drops removed applications and closes unused pools that no request in hand needs. Call about once a second.
  /// - Parameter inHand: applications and pools of the requests in hand; evaluated only if needed.
  /// - Returns: the closed accounts.
  func letGo(inHand: @autoclosure () -> (apps: Set<Int>, pools: Set<Int>)) -> [Int] {
    for pool in left where pool.inFlight == 0 { pool.shutdown() }
    left.removeAll { $0.inFlight == 0 }
    guard !apps.gone.isEmpty || !apps.withFormerSenders.isEmpty || !apps.unusedPools.isEmpty else { return [] }
    var inHand = inHand()
    for app in apps.gone.union(apps.withFormerSenders).sorted() {
      if inHand.apps.contains(app) {
        for routes in [apps[app].routes] + apps[app].senders.values { inHand.pools.formUnion(routes.pools) }
      } else {
        apps.clear(app)
      }
    }
    let closing = apps.unusedPools.sorted().filter { !inHand.pools.contains($0) && accounts[$0].inFlight == 0 }
    for number in closing { close(number) }
    if !closing.isEmpty { noteExpiries() }
    return closing
  }

  private func close(_ number: Int) {
    if let recipe = recipes[number] {
      numbers[recipe] = nil
      close(accounts[number], of: recipe)
    }
    recipes[number] = nil
    apps.forget(pool: number)
    free.append(number)
  }

  /// Closes the account, and its pool with the last one, once nothing is in flight.
  private func close(_ account: PoolAccount, of recipe: PoolRecipe) {
    account.pool.close(account)
    guard account.pool.openAccounts == 0 else { return }
    shared[recipe.shared] = nil
    if account.pool.inFlight == 0 { account.pool.shutdown() } else { left.append(account.pool) }
  }

  /// At the shard's end, closes the connections before the event loop.
  func shutdown() { for pool in accounts.map(\.pool) + left { pool.shutdown() } }
}
