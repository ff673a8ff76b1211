/// Which pools are looked at, of the many that there may be, and what reloads do to them.
extension Pipeline {
  /// Something waits for the pool.
  func wake(_ pool: Int) {
    guard !pools[pool].isActive else { return }
    pools[pool].isActive = true
    active.append(pool)
  }

  /// To be called a few times a second: pools for which there is nothing to do are no longer looked at.
  func rest() {
    active.removeAll { index in
      let lanes = pools[index]
      let rests =
        lanes.isEmpty && lanes.account.inFlight == 0 && !lanes.bulkhead.isClosed && lanes.bulkhead.troubledSince == nil
      if rests { pools[index].isActive = false }
      return rests
    }
  }

  /// Pushes on streams.
  var onStreams: Int { active.reduce(0) { $0 + pools[$1].account.inFlight } }

  /// Pools that a report names at most, beside those in trouble and those of applications that have a hold queue.
  private static let mostReported = 100

  /// Those that a report names: all of a few applications; of many, those that are in trouble, those whose application has a hold queue or a
  /// series of its own.
  var reportedPools: Set<Int> {
    var reported = holds.present.reduce(into: Set(active.filter(isTroubled))) { $0.formUnion(apps[$1].pools) }
    var others = 0
    for app in apps.indices.prefix(AppSeries.most) {
      for pool in apps[app].pools where others < Self.mostReported && reported.insert(pool).inserted { others += 1 }
    }
    return reported
  }

  /// Takes over pools that a reload has made, by their numbers.
  /// - Parameter moved: those that go by another connection from now on.
  func take(_ made: [(number: Int, lanes: PoolLanes)], moved: [(number: Int, lanes: PoolLanes)]) {
    for (number, lanes) in made {
      if number == pools.count {
        pools.append(lanes)
      } else {
        active.removeAll { $0 == number }
        pools[number] = lanes
      }
    }
    for (number, lanes) in moved { pools[number].move(to: lanes.account) }
    bodies.isShared = apps.count > 1
  }

  /// They are closed, and no request in hand goes by them.
  func forget(pools closed: [Int]) {
    guard !closed.isEmpty else { return }
    for number in closed { pools[number] = PoolLanes(pools[number].account) }
    active.removeAll { !pools[$0].isActive }
  }

  /// What requests in hand go by, or may still go by.
  var inHand: (apps: Set<Int>, pools: Set<Int>) {
    var (apps, pools): (Set<Int>, Set<Int>) = ([], [])
    for entry in table.entries where entry.isInUse {
      if let app = entry.identity.app { apps.insert(app) }
      pools.formUnion(entry.route.routes.pools)
      pools.insert(entry.route.apnsPool)
      // A list's or a page's devices mostly go by the same one.
      var last = -1
      for recipient in entry.recipients where recipient.pool != last {
        last = recipient.pool
        pools.insert(last)
      }
    }
    return (apps, pools)
  }
}
