import DeviceRegistry
import Settings

/// The objects that the paths of the HTTP door share. Confined to the loop's thread.
final class GatewayParts {
  let context: GatewayContext
  let registry: RegistryClient
  let keys: KeyCache
  let send: SendService
  let changes: ChangeService
  let sessions = ConsoleSessions()
  let letters: LetterJobs
  let traces: FleetTraces
  /// A reload doesn't change these settings.
  let http: GatewayHTTPSettings
  private(set) var configuration: Configuration
  private(set) var applications: GatewayApplications

  init(_ context: GatewayContext, _ http: GatewayHTTPSettings) throws(ConfigurationError) {
    guard let registry = context.registry else { throw ConfigurationError.missingDoorRegistry }
    self.context = context
    self.http = http
    self.registry = registry
    keys = KeyCache(registry, loop: context.loop)
    traces = FleetTraces(context)
    letters = LetterJobs(registry, context)
    send = SendService(context, wait: http.wait, retransmission: http.retransmission, sharesAll: http.isShared)
    changes = ChangeService(context, wait: http.wait)
    configuration = context.configuration
    applications = GatewayApplications(configuration)
  }

  /// Replaces the applications, for later calls.
  func reload(_ configuration: Configuration) {
    self.configuration = configuration
    applications = GatewayApplications(configuration)
  }
}
