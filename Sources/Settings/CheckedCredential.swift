import Providers

/// A credential that was loaded successfully and can be tried.
package struct CheckedCredential {
  /// The name in logs.
  package let name: String
  /// The app's own topic at APNs; nil for other platforms.
  package let topic: String?
  package let value: LoadedCredential.Value
}

extension ConfigurationCheck {
  /// Credentials of pushes to devices, in the configuration's order, without duplicates of credential and topic. One that several
  /// applications share has the name that it has in the first of them.
  /// - Parameter only: the application whose credentials are wanted; nil for all.
  package func credentials(of only: String?) -> [CheckedCredential] {
    guard let configuration else { return [] }
    var seen: Set<String> = []
    var wanted: Set<String> = []
    let all = configuration.apps.flatMap { app in
      app.sets.flatMap { sender, set -> [(key: String, credential: CheckedCredential)] in
        set.sources.compactMap { reach, source in
          let place = CredentialPlace(app: app.id, sender: sender, reach: reach)
          guard let loaded = credentialStore.credentials[place] else { return nil }
          var topic: String?
          switch reach {
          case .apns(let environment): topic = set.apns.first { $0.environment == environment }?.topic
          case .broadcasts: return nil
          case .fcm, .webpush: break
          }
          let key = "\(loaded.fingerprint) \(topic ?? "")"
          if only == nil || only == app.id { wanted.insert(key) }
          guard seen.insert(key).inserted else { return nil }
          return (key, CheckedCredential(name: place.name, topic: topic, value: loaded.value))
        }
      }
    }
    return all.filter { wanted.contains($0.key) }.map(\.credential)
  }
}
