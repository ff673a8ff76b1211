import Logging
import Settings

/// The webhooks of the configuration, at the start and after each reload.
extension WebhookService {
  /// Starts, changes and ends senders as the configuration says. A webhook with a file that can't be used stays as it was.
  func serve(_ next: Configuration) -> [ConfigurationError] {
    var errors: [ConfigurationError] = []
    var former = Dictionary(senders.map { ($0.name, $0) }) { first, _ in first }
    senders = []
    for app in next.apps {
      for webhook in app.webhooks {
        let name = "\(app.id)/\(webhook.name)"
        let known = former.removeValue(forKey: name)
        if let known { senders.append(known) }
        do throws(ConfigurationError) {
          let receiver = try WebhookReceiver(webhook, app: app.id)
          if let known { known.reload(receiver) } else { senders.append(sender(name, receiver, app.id)) }
        } catch { errors.append(error) }
      }
    }
    for sender in former.values { sender.stop() }
    leaving += former.values
    gone.formIntersection(senders.map(\.name))
    return errors
  }

  private func sender(_ name: String, _ receiver: WebhookReceiver, _ app: String) -> WebhookSender {
    WebhookSender(
      name: name, receiver, queue: configuration.topology.webhookQueue(app, receiver.webhook.name), service: self)
  }

  /// After an error the previous settings stay in use.
  func reloadWebhooks(because reason: String) {
    guard !isStopping else { return }
    let next: Configuration
    do throws(ConfigurationError) { next = try reload() } catch {
      return log.error("the old configuration stays in force", ["reason": "\(error)"])
    }
    log.info("reloading", ["because": reason])
    watch.follow(next.webhookFiles(configurationFile))
    for error in serve(next) { log.error("a webhook can't use its new settings", ["reason": "\(error)"]) }
    if let modes { follow(modes) }
    let others = next.changesForWebhookRestart(from: configuration)
    if !others.isEmpty { log.warning("some changed settings take effect only after a restart", ["settings": others]) }
    log.info("reloaded", ["webhooks": senders.count])
  }
}
