import DeviceRegistry
import Providers
import TLS

extension Configuration {
  /// The rules for new subscriptions to web push.
  /// - Throws: if a VAPID key can't be read.
  package func subscriptionRules() throws(ConfigurationError) -> SubscriptionRules.LookUp {
    let files = MaterialCache()
    var rules: [[UInt8]: [[UInt8]?: SubscriptionRules]] = [:]
    for app in apps {
      for (sender, set) in app.sets {
        guard let webpush = set.webpush, let first = webpush.keys.first, let hosts = HostPolicy(webpush.hosts) else { continue }
        let setting = CredentialPlace(app: app.id, sender: sender, reach: .webpush).setting + ".key"
        let pem = try files.bytes(of: first, for: setting)
        let key = try usable(setting) { () throws(CredentialError) in try VAPIDKey(pem: pem, subject: webpush.subject) }
        rules[Array(app.id.utf8), default: [:]][sender.map { Array($0.utf8) }] = SubscriptionRules(
          keyID: key.id, allows: hosts.allows)
      }
    }
    return { app, sender in rules[app].flatMap { $0[sender] ?? $0[nil] } }
  }
}
