/// Where a credential stands: an application, or one of its senders, and what it reaches.
package struct CredentialPlace: Hashable, Sendable {
  package enum Reach: Hashable, Sendable {
    case apns(APNsConfiguration.Environment)
    /// Broadcasts to channels, where they go to a host of their own.
    case broadcasts(APNsConfiguration.Environment)
    case fcm
  }

  package let app: String
  /// nil for the application's own.
  package let sender: String?
  package let reach: Reach

  package init(app: String, sender: String?, reach: Reach) {
    self.app = app
    self.sender = sender
    self.reach = reach
  }

  /// The setting, for errors.
  var setting: String {
    let kind = if case .fcm = reach { "fcm" } else { "apns" }
    return "apps.\(owner).\(kind)"
  }

  /// For logs and figures.
  package var name: String {
    switch reach {
    case .apns(let environment): "\(owner) APNs \(environment.rawValue)"
    case .broadcasts(let environment): "\(owner) APNs \(environment.rawValue) broadcasts"
    case .fcm: "\(owner) FCM"
    }
  }

  private var owner: String { app + (sender.map { ".senders.\($0)" } ?? "") }
}

/// What a credential is made of, without the settings that can change while it stays the same.
package enum CredentialSource: Hashable, Sendable {
  case apns(APNsConfiguration.Credential, host: String, port: Int, ca: Material?)
  case fcm(serviceAccount: Material, host: String, port: Int, isEndpointGiven: Bool, ca: Material?)

  /// Its ids and its endpoint, without its files.
  var identity: [String] {
    switch self {
    case .apns(.token(_, let keyID, let teamID), let host, let port, _): ["APNs key", keyID, teamID, host, "\(port)"]
    case .apns(.certificate, let host, let port, _): ["APNs certificate", host, "\(port)"]
    case .fcm(_, let host, let port, let isEndpointGiven, _): ["FCM", host, "\(port)", "\(isEndpointGiven)"]
    }
  }

  /// What it is made of besides the authorities, by the names of the settings.
  var materials: [(name: String, material: Material)] {
    switch self {
    case .apns(.token(let key, _, _), _, _, _): [("key", key)]
    case .apns(.certificate(let certificate, let key, let passphrase), _, _, _):
      [("certificate", certificate)] + (key.map { [("key", $0)] } ?? []) + (passphrase.map { [("passphrase", $0)] } ?? [])
    case .fcm(let account, _, _, _, _): [("serviceAccount", account)]
    }
  }

  var ca: Material? {
    switch self {
    case .apns(_, _, _, let ca), .fcm(_, _, _, _, let ca): ca
    }
  }
}

extension CredentialSet {
  /// Each credential with what it reaches, in the configuration's order.
  var sources: [(reach: CredentialPlace.Reach, source: CredentialSource)] {
    apns.map { (.apns($0.environment), .apns($0.credential, host: $0.host, port: $0.port, ca: $0.ca)) }
      + apns.filter(\.hasBroadcastHost).map {
        (.broadcasts($0.environment), .apns($0.credential, host: $0.broadcastHost, port: $0.broadcastPort, ca: $0.ca))
      }
      + (fcm.map {
        [
          (
            .fcm,
            .fcm(
              serviceAccount: $0.serviceAccount, host: $0.host, port: $0.port, isEndpointGiven: $0.isEndpointGiven, ca: $0.ca)
          )
        ]
      } ?? [])
  }
}

extension APNsConfiguration {
  /// Broadcasts go to another host than pushes to devices.
  package var hasBroadcastHost: Bool { broadcastHost != host || broadcastPort != port }
}

extension AppConfiguration {
  /// Its own credentials, then those of its senders.
  package var sets: [(sender: String?, set: CredentialSet)] {
    [(nil, credentials)] + senders.sorted { $0.key < $1.key }.map { (Optional($0.key), $0.value) }
  }

  /// Where its credentials stand.
  package var places: [CredentialPlace] {
    sets.flatMap { sender, set in
      set.apns.map { CredentialPlace(app: id, sender: sender, reach: .apns($0.environment)) }
        + set.apns.filter(\.hasBroadcastHost).map {
          CredentialPlace(app: id, sender: sender, reach: .broadcasts($0.environment))
        }
        + (set.fcm == nil ? [] : [CredentialPlace(app: id, sender: sender, reach: .fcm)])
    }
  }

  /// What `restricted_package_name` may say.
  public var packages: [String] {
    let sets = [credentials] + Array(senders.values)
    return Set([id] + sets.compactMap { $0.fcm?.package }).sorted()
  }
}

extension Configuration {
  /// Every credential of every application and sender.
  package var credentials: [(place: CredentialPlace, source: CredentialSource)] {
    apps.flatMap { app in
      app.sets.flatMap { sender, set in
        set.sources.map { (CredentialPlace(app: app.id, sender: sender, reach: $0.reach), $0.source) }
      }
    }
  }

  /// The pools that this makes, as logs name them; what several places share stands by the first.
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

  /// Where the registry is, without what leads there.
  package var registryKind: String { registry.map { $0.hasPrefix("sqlite:") ? "SQLite" : "PostgreSQL" } ?? "none" }

  /// Every file that the configuration is made of, its own left out.
  package var watchedFiles: [String] {
    var materials = [brokerCA]
    for (_, source) in credentials { materials += source.materials.map(\.material) + [source.ca] }
    return Set(materials.compactMap { $0?.path }).union(valueFiles).sorted()
  }
}
