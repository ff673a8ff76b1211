import PushCore
import Settings

/// The properties of an account and its pool. Uses with equal recipes share both.
package struct PoolRecipe: Hashable {
  package let credential: LoadedCredential
  /// APNs' answer timeout in seconds.
  package var requestTimeout = 0.0
  /// The fleet's limit of FCM messages.
  package var messagesPerMinute = 0
  /// The bundle ID, package, or place of the credential: each application has its own account, even with a shared credential.
  private(set) var application: String
  /// Nil except for APNs.
  package var environment: APNsConfiguration.Environment?
  /// The push service; nil except for web push.
  package var origin: WebPushOrigin?

  /// The properties of the pool: an APNs pool has an account for each application.
  package var shared: PoolRecipe {
    var shared = self
    if environment != nil { shared.application = "" }
    return shared
  }

  package func of(_ origin: WebPushOrigin) -> PoolRecipe {
    var recipe = self
    recipe.origin = origin
    return recipe
  }
}

/// An unchanged credential is the same object.
extension LoadedCredential: Hashable {
  package static func == (a: LoadedCredential, b: LoadedCredential) -> Bool { a === b }
  package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// A way in which an application or sender reaches devices, with its recipe in a configuration.
package struct PoolUse {
  package let place: CredentialPlace
  package let routes: SenderRoutes
  /// Nil if the configuration has no such way.
  package var recipe: PoolRecipe?
  package var settings: APNsSettings?
  /// For FCM: the bundle ID of the application's iPhones, if its library acknowledges pushes.
  var upmcTopic: String?
  /// For FCM: the Android package.
  var package: String?
  let priority: Priority
  var isThere = false
  /// This way serves APNs tokens with an unknown environment.
  var isFirst = false

  /// The pool that serves this way at present; nil for web push, which has one for each push service.
  package var pool: Int? { place.reach == .webpush ? nil : routes.pools(of: place.reach).first }

  /// - Parameter credentials: nil if nothing is sent; then no way has a recipe.
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
    last.package = set.fcm?.package
    if let fcm = set.fcm, credentials?.keys.contains(last.place) ?? true {
      last.recipe = credentials?[last.place].map {
        PoolRecipe(credential: $0, messagesPerMinute: fcm.messagesPerMinute, application: fcm.package)
      }
      last.isThere = true
    }
    var browsers = use(.webpush)
    if set.webpush != nil, credentials?.keys.contains(browsers.place) ?? true {
      browsers.recipe = credentials?[browsers.place].map { PoolRecipe(credential: $0, application: browsers.place.name) }
      browsers.isThere = true
    }
    return uses + [last, browsers]
  }

  /// Chooses the routes of tokens with an unknown environment, after all pools are assigned.
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
      routes.fcmSettings = FCMSettings(
        defaultPriority: priority, upmcTopic: upmcTopic, package: package.map { (place.app, $0) })
    case .webpush:
      routes.hasWebPush = isThere
      routes.webPushPriority = priority
    }
  }
}

extension PoolUse {
  /// Keeps the old route for requests from before the change.
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
    case .fcm, .webpush: nil
    }
  }

  func pools(of reach: CredentialPlace.Reach) -> [Int] {
    switch reach {
    case .apns, .broadcasts: apnsRoute(for: reach).map { [$0.pool] } ?? []
    case .fcm: fcm.map { [$0] } ?? []
    case .webpush: webpush?.pools ?? []
    }
  }
}
