import Providers
import Settings

/// A webhook's settings with the contents of its files. A reload replaces it.
struct WebhookReceiver {
  let webhook: WebhookConfiguration
  let secrets: [[UInt8]]
  let target: DialTarget

  init(_ webhook: WebhookConfiguration, app: String) throws(ConfigurationError) {
    let setting = webhook.setting(of: app)
    self.webhook = webhook
    secrets = try webhook.loadSecrets(setting)
    target = try webhook.target(setting, timeout: WebhookSender.timeout)
  }
}
