import Providers

/// A credential that was loaded successfully and can be tried.
package struct CheckedCredential {
  /// The name in logs.
  package let name: String
  package let app: String
  /// The app's own topic at APNs; nil for other platforms.
  package let topic: String?
  package let value: LoadedCredential.Value
}

extension ConfigurationCheck {
  /// Credentials of pushes to devices, in the configuration's order, without duplicates of credential and topic.
  package var credentials: [CheckedCredential] {
    guard let configuration else { return [] }
    var seen: Set<String> = []
    return configuration.apps.flatMap { app in
      app.sets.flatMap { sender, set -> [CheckedCredential] in
        set.sources.compactMap { reach, source in
          let place = CredentialPlace(app: app.id, sender: sender, reach: reach)
          guard let loaded = credentialStore.credentials[place] else { return nil }
          var topic: String?
          switch reach {
          case .apns(let environment): topic = set.apns.first { $0.environment == environment }?.topic
          case .broadcasts: return nil
          case .fcm, .webpush: break
          }
          guard seen.insert("\(loaded.fingerprint) \(topic ?? "")").inserted else { return nil }
          return CheckedCredential(name: place.name, app: app.id, topic: topic, value: loaded.value)
        }
      }
    }
  }
}
