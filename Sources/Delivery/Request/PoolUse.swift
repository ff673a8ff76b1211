import PushCore
import Settings

/// The properties of an account and its pool. Uses with an equal recipe share both.
package struct PoolRecipe: Hashable {
  package let credential: LoadedCredential
  /// Seconds that APNs may take to answer.
  package var requestTimeout = 0.0
  /// What the fleet may send by FCM.
  package var messagesPerMinute = 0
  /// The bundle id or the package: applications have accounts of their own, whatever their credential reaches.
  private(set) var application: String
  /// Of APNs; nil for FCM.
  package var environment: APNsConfiguration.Environment?

  /// The properties of the pool: one of APNs has an account for each application.
  package var shared: PoolRecipe {
    var shared = self
    if environment != nil { shared.application = "" }
    return shared
  }

  package static func == (a: PoolRecipe, b: PoolRecipe) -> Bool {
    a.credential === b.credential && a.requestTimeout == b.requestTimeout && a.messagesPerMinute == b.messagesPerMinute
      && a.application == b.application && a.environment == b.environment
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(ObjectIdentifier(credential))
    hasher.combine(application)
  }
}

/// One of the ways in which an application or a sender reaches devices, and what a setup wants of it.
package struct PoolUse {
  package let place: CredentialPlace
  package let routes: SenderRoutes
  /// nil where the setup has no such way.
  package var recipe: PoolRecipe?
  package var settings: APNsSettings?
  /// Of FCM: the bundle id of the application's iPhones, where its library acknowledges pushes.
  var upmcTopic: String?
  let priority: Priority
  /// The configuration has it.
  var isThere = false
  /// It serves APNs tokens whose environment isn't known.
  var isFirst = false

  /// The pool that serves it so far.
  package var pool: Int? {
    if case .fcm = place.reach { routes.fcm } else { routes.apnsRoute(for: place.reach)?.pool }
  }

  /// - Parameter credentials: nil where nothing is to be sent: then no way has a recipe.
  package static func all(
    of set: CredentialSet, _ app: AppConfiguration, _ credentials: [CredentialPlace: LoadedCredential]?, _ sender: String?,
    _ routes: SenderRoutes
  ) -> [PoolUse] {
    func use(_ reach: CredentialPlace.Reach) -> PoolUse {
      PoolUse(
        place: CredentialPlace(app: app.id, sender: sender, reach: reach), routes: routes, priority: app.defaultPriority)
    }
    var uses: [PoolUse] = []
    for environment in APNsConfiguration.Environment.allCases {
      let apns = set.apns.first { $0.environment == environment }
      for reach in [CredentialPlace.Reach.apns(environment), .broadcasts(environment)] {
        var use = use(reach)
        let isOwn = reach == .apns(environment) || apns?.hasBroadcastHost == true
        if let apns, isOwn, credentials?.keys.contains(use.place) ?? true {
          use.recipe = credentials?[use.place].map {
            PoolRecipe(
              credential: $0, requestTimeout: Double(apns.timeout), application: apns.topic, environment: environment)
          }
          use.isThere = true
          use.settings = APNsSettings(topic: apns.topic, defaultPriority: app.defaultPriority, isUPMC: app.isUPMC)
          use.isFirst = reach == .apns(environment) && set.apns.first?.environment == environment
        }
        uses.append(use)
      }
    }
    var last = use(.fcm)
    if app.isUPMC { last.upmcTopic = set.apns.first?.topic ?? app.id }
    if let fcm = set.fcm, credentials?.keys.contains(last.place) ?? true {
      last.recipe = credentials?[last.place].map {
        PoolRecipe(credential: $0, messagesPerMinute: fcm.messagesPerMinute, application: fcm.package)
      }
      last.isThere = true
    }
    return uses + [last]
  }

  /// When all are assigned.
  package static func chooseFirst(_ uses: [PoolUse]) {
    for use in uses { use.routes.apns = nil }
    for use in uses where use.isFirst { use.routes.apns = use.routes.apnsRoute(for: use.place.reach) }
  }

  package func assign(pool: Int?) {
    let route = pool.flatMap { pool in settings.map { APNsRoute(pool: pool, settings: $0) } }
    switch place.reach {
    case .broadcasts(let environment):
      retire(unless: pool)
      routes.broadcasts[environment] = route
    case .apns(let environment):
      if let settings { routes.isUPMC = settings.isUPMC }
      retire(unless: pool)
      switch environment {
      case .production: routes.production = route
      case .sandbox: routes.sandbox = route
      }
    case .fcm:
      routes.fcm = pool
      if isThere { routes.isUPMC = upmcTopic != nil }
      routes.fcmSettings = FCMSettings(defaultPriority: priority, upmcTopic: upmcTopic)
    }
  }
}

extension PoolUse {
  /// Requests that were here before may still go by the route that there was.
  private func retire(unless pool: Int?) {
    guard let old = routes.apnsRoute(for: place.reach), old.pool != pool else { return }
    routes.former.removeAll { $0.pool == old.pool }
    routes.former.append(old)
  }
}

extension SenderRoutes {
  package func apnsRoute(for reach: CredentialPlace.Reach) -> APNsRoute? {
    switch reach {
    case .apns(.production): production
    case .apns(.sandbox): sandbox
    case .broadcasts(let environment): broadcasts[environment]
    case .fcm: nil
    }
  }
}
