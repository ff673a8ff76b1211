import Providers

/// A credential that can be loaded, for whoever tries it.
package struct CheckedCredential {
  /// As logs name it.
  package let name: String
  package let app: String
  /// The app's own topic; nil for FCM.
  package let topic: String?
  package let value: LoadedCredential.Value
}

extension ConfigurationCheck {
  /// Those that pushes to devices go by, in the configuration's order; the same one by the same topic once.
  package var credentials: [CheckedCredential] {
    guard let configuration else { return [] }
    var seen: Set<String> = []
    return configuration.apps.flatMap { app in
      app.sets.flatMap { sender, set -> [CheckedCredential] in
        set.sources.compactMap { reach, source in
          let place = CredentialPlace(app: app.id, sender: sender, reach: reach)
          guard let loaded = shelf.credentials[place] else { return nil }
          var topic: String?
          switch reach {
          case .apns(let environment): topic = set.apns.first { $0.environment == environment }?.topic
          case .broadcasts: return nil
          case .fcm: break
          }
          guard seen.insert("\(loaded.fingerprint) \(topic ?? "")").inserted else { return nil }
          return CheckedCredential(name: place.name, app: app.id, topic: topic, value: loaded.value)
        }
      }
    }
  }
}
