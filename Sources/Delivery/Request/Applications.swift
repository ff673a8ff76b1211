import Settings

/// A shard's applications, by index. An application keeps its index while the process runs, even if it is removed and added
/// again. Only reloads change this, between two messages.
package final class Applications {
  private var all: [Application] = []
  private var places: [[UInt8]: Int] = [:]
  /// Configured applications, by package name.
  private var byPackage: [[UInt8]: Set<Int>] = [:]
  /// Configured applications, by pool.
  private var byPool: [Int: Set<Int>] = [:]
  /// Applications that used a pool before.
  private var past: [Int: Set<Int>] = [:]
  private(set) var count = 0
  /// The only configured application; nil if there are several.
  private(set) var only: Int?
  /// Removed applications that may still have requests.
  package private(set) var gone: Set<Int> = []
  /// Applications with routes of removed senders.
  package private(set) var withFormerSenders: Set<Int> = []
  /// Pools that no configured application uses.
  package private(set) var unusedPools: Set<Int> = []
  package private(set) var series = AppSeries()

  package init() {}

  /// Empty if the application is unknown.
  func id(of app: Int?) -> [UInt8] { app.map { self[$0].id } ?? [] }

  /// All applications, removed ones too.
  package var indices: Range<Int> { all.indices }
  package subscript(index: Int) -> Application { all[index] }

  /// The index of a configured application.
  package func index(of id: [UInt8]) -> Int? {
    guard let index = places[id], all[index].isConfigured else { return nil }
    return index
  }

  /// The index of a configured or removed application.
  func place(of id: [UInt8]) -> Int? { places[id] }

  /// The index of a configured application with this package; the first by id if there are several.
  func index(ofPackage package: [UInt8]?) -> Int? {
    package.flatMap { byPackage[$0] }?.min { all[$0].id.lexicographicallyPrecedes(all[$1].id) }
  }

  package func users(of pool: Int) -> Set<Int> { byPool[pool] ?? [] }

  // MARK: a reload

  /// Adds or updates an application with its configuration. Call ``rerouted(_:)`` when its routes are set.
  /// - Parameter credentials: nil if nothing is sent.
  /// - Returns: its index, and the ways in which it and its senders reach devices.
  package func put(
    _ app: AppConfiguration, _ credentials: [CredentialPlace: LoadedCredential]?
  ) -> (index: Int, uses: [PoolUse]) {
    let index = put(
      Array(app.id.utf8), packages: app.packages.map { Array($0.utf8) }, rights: AppRights(app),
      senders: app.senders.keys.map { Array($0.utf8) })
    all[index].ignoresUnknownNames = app.ignoresUnknownNames
    all[index].isUPMC = app.isUPMC
    all[index].countsBadges = app.countsBadges
    all[index].unknownOutcome = app.unknownOutcome
    all[index].pausable = app.pausable
    let uses = app.sets.flatMap { sender, set in
      let routes = sender.flatMap { all[index].senders[Array($0.utf8)] } ?? all[index].routes
      return PoolUse.all(of: set, app, credentials, sender, routes)
    }
    return (index, uses)
  }

  /// Adds or updates an application.
  /// - Returns: its index.
  @discardableResult
  package func put(_ id: [UInt8], packages: [[UInt8]], rights: AppRights = AppRights(), senders: [[UInt8]]) -> Int {
    let index: Int
    if let place = places[id] {
      index = place
      for package in all[index].packages { byPackage[package]?.remove(index) }
    } else {
      index = all.count
      all.append(Application(id: id, packages: packages, routes: SenderRoutes(), isConfigured: false))
      places[id] = index
      series.add(index, id)
    }
    if !all[index].isConfigured {
      all[index].isConfigured = true
      gone.remove(index)
      count += 1
      only = count == 1 ? index : nil
    }
    all[index].packages = packages
    all[index].rights = rights
    for package in packages { byPackage[package, default: []].insert(index) }
    let wanted = Set(senders)
    for (sender, routes) in all[index].senders where !wanted.contains(sender) {
      all[index].senders[sender] = nil
      all[index].formerSenders.append(routes)
      withFormerSenders.insert(index)
    }
    for sender in senders where all[index].senders[sender] == nil { all[index].senders[sender] = SenderRoutes() }
    return index
  }

  /// Removes an application. Requests in hand keep its routes.
  package func remove(_ index: Int) {
    guard all[index].isConfigured else { return }
    all[index].isConfigured = false
    gone.insert(index)
    for package in all[index].packages { byPackage[package]?.remove(index) }
    count -= 1
    only = count == 1 ? all.firstIndex(where: \.isConfigured) : nil
    rerouted(index)
  }

  /// Updates the pools after a change of the routes.
  package func rerouted(_ index: Int) {
    let app = all[index]
    let pools =
      app.isConfigured ? app.senders.values.reduce(into: Set(app.routes.pools)) { $0.formUnion($1.pools) }.sorted() : []
    for pool in app.pools where !pools.contains(pool) {
      byPool[pool]?.remove(index)
      past[pool, default: []].insert(index)
      if byPool[pool]?.isEmpty == true { unusedPools.insert(pool) }
    }
    for pool in pools {
      byPool[pool, default: []].insert(index)
      unusedPools.remove(pool)
    }
    all[index].pools = pools
    // Present routes with the same pools have the settings.
    forgetFormerSenders(of: index) { $0.former.isEmpty && Set($0.pools).isSubset(of: pools) }
  }

  // MARK: removed applications and pools

  /// Forgets the routes of removed senders, or all routes if the application is removed.
  package func clear(_ index: Int) {
    withFormerSenders.remove(index)
    all[index].formerSenders = []
    guard gone.remove(index) != nil else { return }
    all[index].routes = SenderRoutes()
    all[index].senders = [:]
  }

  /// The pool is closed, and its number may be reused.
  package func forget(pool: Int) {
    unusedPools.remove(pool)
    byPool[pool] = nil
    for index in past.removeValue(forKey: pool) ?? [] {
      for routes in all[index].formerSenders { routes.remove(pool) }
      for routes in [all[index].routes] + all[index].senders.values { routes.former.removeAll { $0.pool == pool } }
      forgetFormerSenders(of: index) { $0.isEmpty }
    }
  }

  private func forgetFormerSenders(of index: Int, where isDone: (SenderRoutes) -> Bool) {
    guard withFormerSenders.contains(index) else { return }
    all[index].formerSenders.removeAll(where: isDone)
    if all[index].formerSenders.isEmpty { withFormerSenders.remove(index) }
  }
}
