import Settings

/// A shard's applications, by index. Whatever is kept for an application names it by its index, which is its own as long as the process
/// runs: the place of one that is removed stays, and is its own again when it comes back.
///
/// Changed by a reload alone, between two messages.
package final class Applications {
  private var all: [Application] = []
  private var places: [[UInt8]: Int] = [:]
  /// Those that are configured, by what `restricted_package_name` may say.
  private var byPackage: [[UInt8]: Set<Int>] = [:]
  /// Those that are configured, by the pools that reach their devices.
  private var byPool: [Int: Set<Int>] = [:]
  /// Those that went by a pool and no longer do.
  private var past: [Int: Set<Int>] = [:]
  /// Those that are configured.
  private(set) var count = 0
  /// The one that is configured; nil where several are.
  private(set) var only: Int?
  /// Removed, and not yet let go of.
  package private(set) var gone: Set<Int> = []
  /// Those that have senders' routes left which are configured no longer.
  package private(set) var withFormerSenders: Set<Int> = []
  /// Pools that no configured application goes by any longer.
  package private(set) var unusedPools: Set<Int> = []
  package private(set) var series = AppSeries()

  package init(_ apps: [Application] = []) {
    for app in apps {
      let index = put(app.id, packages: app.packages, rights: app.rights, senders: [])
      all[index].routes = app.routes
      all[index].senders = app.senders
      rerouted(index)
    }
  }

  /// Empty while it is not known which application it is.
  func id(of app: Int?) -> [UInt8] { app.map { self[$0].id } ?? [] }

  /// All that have ever been configured.
  package var indices: Range<Int> { all.indices }
  package subscript(index: Int) -> Application { all[index] }

  /// Of one that is configured.
  package func index(of id: [UInt8]) -> Int? {
    guard let index = places[id], all[index].isConfigured else { return nil }
    return index
  }

  /// Of one that is or was configured.
  func place(of id: [UInt8]) -> Int? { places[id] }

  /// Of one that is configured with this package; the first by id where several are.
  func index(ofPackage package: [UInt8]) -> Int? {
    byPackage[package]?.min { all[$0].id.lexicographicallyPrecedes(all[$1].id) }
  }

  package func users(of pool: Int) -> Set<Int> { byPool[pool] ?? [] }

  // MARK: a reload

  /// Takes in an application, or its packages, rights and senders as they are now; ``rerouted(_:)`` is to follow when its routes are set.
  /// - Returns: its index.
  @discardableResult
  package func put(
    _ id: [UInt8], packages: [[UInt8]], rights: AppRights = AppRights(), ignoresUnknownNames: Bool = false,
    isUPMC: Bool = false, countsBadges: Bool = false, unknownOutcome: UnknownOutcome = .retry, senders: [[UInt8]]
  ) -> Int {
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
    all[index].ignoresUnknownNames = ignoresUnknownNames
    all[index].isUPMC = isUPMC
    all[index].countsBadges = countsBadges
    all[index].unknownOutcome = unknownOutcome
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

  /// Nothing more is taken for it; what is in hand goes on by its routes.
  package func remove(_ index: Int) {
    guard all[index].isConfigured else { return }
    all[index].isConfigured = false
    gone.insert(index)
    for package in all[index].packages { byPackage[package]?.remove(index) }
    count -= 1
    only = count == 1 ? all.firstIndex(where: \.isConfigured) : nil
    rerouted(index)
  }

  /// Its routes have changed.
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
    // Whoever goes by the same pools has the settings.
    forgetFormerSenders(of: index) { $0.former.isEmpty && Set($0.pools).isSubset(of: pools) }
  }

  // MARK: what nobody has in hand any longer

  /// Lets go of the routes of senders that are removed, and of all where the application is.
  package func clear(_ index: Int) {
    withFormerSenders.remove(index)
    all[index].formerSenders = []
    guard gone.remove(index) != nil else { return }
    all[index].routes = SenderRoutes()
    all[index].senders = [:]
  }

  /// The pool is closed: its number may become another one's.
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
