import Providers
import Reactor

/// The place of a credential in the configuration: its application, sender and destination.
package struct CredentialPlace: Hashable, Sendable {
  package enum Reach: Hashable, Sendable {
    case apns(APNsConfiguration.Environment)
    /// Broadcasts to channels, if they use a separate host.
    case broadcasts(APNsConfiguration.Environment)
    case fcm
    case webpush
  }

  package let app: String
  /// nil for the application's own credential.
  package let sender: String?
  package let reach: Reach

  package init(app: String, sender: String?, reach: Reach) {
    self.app = app
    self.sender = sender
    self.reach = reach
  }

  var setting: String { "apps.\(owner).\(kind)" }

  private var kind: String {
    switch reach {
    case .apns, .broadcasts: "apns"
    case .fcm: "fcm"
    case .webpush: "webpush"
    }
  }

  /// The names by which operators pause the credential: its own and, for a sender's, the sender's.
  package var controlNames: [String] {
    guard let sender else { return ["\(app)/\(kind)"] }
    return ["\(app)/senders/\(sender)", "\(app)/senders/\(sender)/\(kind)"]
  }

  /// The name in logs and metrics.
  package var name: String {
    switch reach {
    case .apns(let environment): "\(owner) APNs \(environment.rawValue)"
    case .broadcasts(let environment): "\(owner) APNs \(environment.rawValue) broadcasts"
    case .fcm: "\(owner) FCM"
    case .webpush: "\(owner) web push"
    }
  }

  private var owner: String { app + (sender.map { ".senders.\($0)" } ?? "") }
}

/// The settings from which a credential is loaded.
package struct CredentialSource: Hashable, Sendable {
  /// The files and ids, and the endpoint.
  package enum Kind: Hashable, Sendable {
    case apns(APNsConfiguration.Credential, Endpoint)
    case fcm(serviceAccount: Material, Endpoint?)
    case webpush(keys: [Material], subject: String, hosts: [String])
  }

  package let kind: Kind
  let ca: Material?
  let proxy: ProxyChoice

  /// Everything except the contents of files.
  var identity: [String] {
    switch kind {
    case .apns(.token(_, let keyID, let teamID), let endpoint): ["APNs key", keyID, teamID, "\(endpoint)"]
    case .apns(.certificate, let endpoint): ["APNs certificate", "\(endpoint)"]
    case .fcm(_, let endpoint): ["FCM"] + [endpoint].compactMap(\.self).map { "\($0)" }
    case .webpush(_, let subject, let hosts): ["web push", subject] + hosts
    }
  }

  /// The files except CAs, with the names of their settings.
  var materials: [(name: String, material: Material)] {
    switch kind {
    case .apns(.token(let key, _, _), _): [("key", key)]
    case .apns(.certificate(let identity), _): identity.materials(.inCredential)
    case .fcm(let account, _): [("serviceAccount", account)]
    case .webpush(let keys, _, _): Self.named(keys)
    }
  }

  private static func named(_ keys: [Material]) -> [(name: String, material: Material)] {
    keys.enumerated().map { (keys.count == 1 ? "key" : "key[\($0)]", $1) }
  }
}

extension CredentialSet {
  /// The credentials with their destinations, in the configuration's order.
  var sources: [(reach: CredentialPlace.Reach, source: CredentialSource)] {
    var sources = apns.map { (CredentialPlace.Reach.apns($0.environment), $0.source($0.endpoint)) }
    sources += apns.filter(\.hasBroadcastHost).map { (.broadcasts($0.environment), $0.source($0.broadcastEndpoint)) }
    if let fcm {
      let kind = CredentialSource.Kind.fcm(serviceAccount: fcm.serviceAccount, fcm.endpoint)
      sources.append((.fcm, CredentialSource(kind: kind, ca: fcm.ca, proxy: fcm.proxy)))
    }
    if let webpush {
      let kind = CredentialSource.Kind.webpush(keys: webpush.keys, subject: webpush.subject, hosts: webpush.hosts)
      sources.append((.webpush, CredentialSource(kind: kind, ca: webpush.ca, proxy: webpush.proxy)))
    }
    return sources
  }
}

extension APNsConfiguration {
  /// True if broadcasts use another host than pushes to devices.
  package var hasBroadcastHost: Bool { broadcastEndpoint != endpoint }

  func source(_ endpoint: Endpoint) -> CredentialSource {
    CredentialSource(kind: .apns(credential, endpoint), ca: ca, proxy: proxy)
  }
}

extension AppConfiguration {
  /// The application's credentials, then those of its senders.
  package var sets: [(sender: String?, set: CredentialSet)] {
    [(nil, credentials)] + senders.sorted { $0.key < $1.key }.map { (Optional($0.key), $0.value) }
  }

  package var sources: [(place: CredentialPlace, source: CredentialSource)] {
    sets.flatMap { sender, set in
      set.sources.map { (CredentialPlace(app: id, sender: sender, reach: $0.reach), $0.source) }
    }
  }

  /// The places of the credentials and senders that operators can pause, by name. A credential that a sender takes over from
  /// the application is paused by the application's name only.
  package var pausable: [String: [CredentialPlace]] {
    sources.reduce(into: [:]) { pausable, credential in
      var named = credential.place
      if let set = named.sender.flatMap({ senders[$0] }) {
        let isTakenOver =
          switch named.reach {
          case .apns, .broadcasts: set.apns == credentials.apns
          case .fcm: set.fcm == credentials.fcm
          case .webpush: set.webpush == credentials.webpush
          }
        if isTakenOver { named = CredentialPlace(app: id, sender: nil, reach: named.reach) }
      }
      for name in named.controlNames { pausable[name, default: []].append(credential.place) }
    }
  }

  /// The allowed values of `restricted_package_name`.
  public var packages: [String] { Set([id] + sets.compactMap { $0.set.fcm?.package }).sorted() }
}

extension Configuration {
  package var credentials: [(place: CredentialPlace, source: CredentialSource)] { apps.flatMap(\.sources) }

  /// The names of the credentials' pools in logs. A shared pool has the name of its first place.
  package var poolNames: [String] {
    var apns: Set<APNsConfiguration> = []
    var fcm: Set<FCMConfiguration> = []
    var names: [String] = []
    for app in apps {
      for (sender, set) in app.sets {
        for way in set.apns where apns.insert(way).inserted {
          names.append(CredentialPlace(app: app.id, sender: sender, reach: .apns(way.environment)).name)
        }
        if let way = set.fcm, fcm.insert(way).inserted {
          names.append(CredentialPlace(app: app.id, sender: sender, reach: .fcm).name)
        }
      }
    }
    return names
  }

  /// The kind of registry, without its address.
  package var registryKind: String { registry.map { if case .sqlite = $0 { "SQLite" } else { "PostgreSQL" } } ?? "none" }

  /// All files that the configuration refers to, except the configuration file.
  package var watchedFiles: [String] {
    var materials = brokerMaterials
    for (_, source) in credentials { materials += source.materials.map(\.material) + [source.ca] }
    return Set(materials.compactMap { $0?.path }).union(valueFiles).sorted()
  }
}
