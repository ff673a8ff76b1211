import DeviceRegistry
import Providers
import PushCore
import Settings

/// The pools that reach an application's browsers: one for each push service that has a device, opened for its first push. Only
/// the services that were used last keep a pool, because anybody can run one.
package final class WebPushRoute {
  /// The properties of the pools, without an origin.
  package private(set) var recipe: PoolRecipe
  private var credentials: WebPushCredentials
  /// By the text of the origin in the devices' tokens.
  private var places: [ArraySlice<UInt8>: Place] = [:]
  private var uses = 0
  /// Opens a pool, or finds the open one. Returns its number.
  private let open: (PoolRecipe) -> Int
  /// Called after a pool was opened or dropped.
  private let onChange: () -> Void

  private struct Place {
    let origin: WebPushOrigin
    let pool: Int
    var used: Int
  }

  /// The most pools of an application in a shard.
  package static let mostPools = 500

  package init(
    _ recipe: PoolRecipe, _ credentials: WebPushCredentials, open: @escaping (PoolRecipe) -> Int,
    onChange: @escaping () -> Void
  ) {
    self.recipe = recipe
    self.credentials = credentials
    self.open = open
    self.onChange = onChange
  }

  /// Uses other keys and hosts from now on.
  package func follow(_ recipe: PoolRecipe, _ credentials: WebPushCredentials) {
    (self.recipe, self.credentials) = (recipe, credentials)
    places = places.filter { credentials.hosts.allows($0.value.origin) }
  }

  /// For new subscriptions.
  var rules: SubscriptionRules? {
    credentials.keys.first.map { SubscriptionRules(keyID: $0.id, allows: credentials.hosts.allows) }
  }

  package var pools: [Int] { origins.map(\.pool) }
  /// In the order of the pools.
  package var origins: [(origin: WebPushOrigin, pool: Int)] {
    places.values.map { ($0.origin, $0.pool) }.sorted { $0.1 < $1.1 }
  }

  func remove(_ pool: Int) { places = places.filter { $0.value.pool != pool } }

  /// The pool for a device.
  /// - Parameter token: see ``WebPushSubscription``.
  func pool(for token: ArraySlice<UInt8>) -> Result<Int, Rejection> {
    guard credentials.key(WebPushSubscription.keyID(of: token)) != nil else {
      return .failure(.unknownKey)
    }
    let text = WebPushSubscription.origin(of: token)
    uses += 1
    if let place = places[text] {
      places[text]?.used = uses
      return .success(place.pool)
    }
    guard let origin = WebPushOrigin(text), credentials.hosts.allows(origin) else {
      return .failure(.disallowedHost)
    }
    if places.count >= Self.mostPools, let oldest = places.min(by: { $0.value.used < $1.value.used })?.key {
      places[oldest] = nil
    }
    let pool = open(recipe.of(origin))
    // A copy, because the slice would keep the page's rows.
    places[ArraySlice(Array(text))] = Place(origin: origin, pool: pool, used: uses)
    onChange()
    return .success(pool)
  }
}
