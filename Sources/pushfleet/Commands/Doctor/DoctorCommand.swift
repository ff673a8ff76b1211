import DeviceRegistry
import Foundation
import PushCore
import Settings

enum DoctorCommand: Command {
  static let page = CommandPage(
    "doctor", "find what is wrong, and how to fix it",
    forms: [.form("--config", ["--app"], ["--management"], ["--json"])],
    """
    Checks the configuration with its keys and certificates, and the parts below. Each finding says what to do.

    Brokers: access, release, exchanges and queues with the fleet's settings, the permissions of a worker, running workers and
    their trouble with providers. If its shortest step is at most 30 s, a message of the doctor goes through the retry ladder.

    Machine: the registry (reachable, writable, free disk space); the limit of open files; the listening addresses of metrics and
    gateway (free, or who is there); the gateway's certificates and keys; a tunnel through each proxy.

    Providers: a push that reaches no device, to APNs with an invalid token, to FCM with validate_only. Push services of browsers
    offer nothing of the kind, so only the keys of web push are checked.

    Nothing is changed. Nothing is declared except the queue PREFIX.doctor for that message, which disappears by itself.
    RabbitMQ logs a line for each permission that is tested.
    """,
    [
      .config(), .option("app", "APP", "check only the providers of this application"),
      .option(
        "management", "URL",
        "RabbitMQ's management API, for facts that AMQP doesn't show: bindings, and policies that make queues "
          + "lose messages. It is asked as the user of `broker`, who needs the tag `management`"),
      .json("one JSON object per finding, each on its own line"),
    ],
    "Exit status 0 when all is well, 78 when configuration or credentials are wrong, 69 when something can't be reached.",
    example: "pushfleet doctor --config pushfleet.json5")

  static func run(_ options: Options) throws {
    let management = try options["management"].map { (text) throws(CommandFailure) in
      guard let address = HTTPAddress(text, defaultPort: 15_672) else {
        throw CommandFailure(.usage, "--management must be http:// or https://, a host, and a port where it isn't 15672")
      }
      return address
    }
    let check = ConfigurationCheck(
      path: options.configurationFile, environment: ProcessInfo.processInfo.environment)
    var findings: [Finding] = []
    func tell(_ new: [Finding]) {
      findings += new
      for finding in new { options.print(finding.json, text: finding.text(width: Terminal.width)) }
    }
    tell(configuration(check))
    if let configuration = check.configuration {
      _ = try configuration.application(options)
      let brokers = try configuration.brokerAddresses()
      for (number, broker) in brokers.enumerated() {
        tell(try DoctorBroker(configuration, broker, hasLadder: number == 0).look())
      }
      // The nodes of a cluster share bindings and policies.
      if let management, let broker = brokers.first {
        tell(try DoctorManagement(configuration.topology, management, broker).look())
      } else {
        Terminal.notice("bindings and policies are checked only with --management http://HOST:15672")
      }
      if !findings.contains(where: { $0.level == .unreachable }) { tell(try workers(configuration)) }
      tell(registry(configuration))
      tell(DoctorMachine.look(configuration))
      if configuration.gateway != nil || configuration.metrics != nil { tell(try DoctorDoors(configuration).look()) }
      tell(try DoctorProxies(configuration, app: options["app"]).look())
      tell(try DoctorProviders(check.credentials(of: options["app"])).look())
    }
    let status = Finding.status(of: findings)
    guard status == .done else {
      let count = findings.count { $0.level == .error || $0.level == .unreachable }
      throw CommandFailure(status, count == 1 ? "one thing is wrong" : "\(count) things are wrong")
    }
  }

  private static func configuration(_ check: ConfigurationCheck) -> [Finding] {
    let findings = check.findings.map { finding in
      let remedy = finding.isError ? "correct it; the other checks need a valid configuration" : nil
      return Finding(finding.isError ? .error : .warning, "configuration", finding.sentence, remedy)
    }
    guard let configuration = check.configuration else { return findings }
    return findings + [Finding(.ok, "configuration", configuration.verdict)]
  }

  // MARK: the workers

  /// Provider problems that workers report. The doctor's own push may succeed all the same, from another address or topic.
  private static func workers(_ configuration: Configuration) throws -> [Finding] {
    var workers: [WorkerAnswer] = []
    let watch = try FleetWatch(configuration, every: nil) { workers = $0.workers }
    do { try watch.run() } catch let failure as CommandFailure where failure.status != .interrupted { return [] }
    return FleetPools(workers).rows.filter { $0.isInTrouble > 0 }.map { pool in
      let remedy = pool.remedy.isEmpty ? nil : pool.remedy
      return Finding(.warning, "workers", "\(pool.name) is in trouble: \(pool.reason)", remedy)
    }
  }

  // MARK: the registry

  private static func registry(_ configuration: Configuration) -> [Finding] {
    guard let location = configuration.registry else { return [] }
    func finding(_ level: Finding.Level, _ sentence: String, _ remedy: String?) -> [Finding] {
      [Finding(level, "registry", sentence, remedy)]
    }
    let file: String? = if case .sqlite(let path) = location { path } else { nil }
    if let file, !FileManager.default.fileExists(atPath: file) {
      let folder = URL(filePath: file).deletingLastPathComponent().path
      guard FileManager.default.isWritableFile(atPath: folder) else {
        return finding(
          .error, "\(file) doesn't exist, and can't be created: its folder doesn't exist or isn't writable",
          "create the folder, mount its volume, or correct `registry`")
      }
      return finding(.warning, "\(file) doesn't exist yet", "the first worker that starts, or `devices import`, creates it")
    }
    do throws(RegistryError) {
      let store = try RegistrySession.open(location, configuration, isReading: true)
      _ = try store.campaigns(limit: 1)
      try write(to: store, configuration)
      return finding(.ok, "reached, with the schema of this version, and writable", nil)
        + (try DoctorDoors.keys(store, configuration))
    } catch {
      let (level, remedy) = DoctorMachine.remedy(for: error, file: file, user: NSUserName())
      return finding(level, "\(error)", remedy)
    }
  }

  /// Tests writing by unregistering a token that doesn't exist.
  private static func write(to store: DeviceStore, _ configuration: Configuration) throws(RegistryError) {
    guard let app = configuration.apps.first?.id else { return }
    let change: JSONObject = ["op": "unregister", "app": app, "token": "pushfleet-doctor"]
    guard case .success(let parsed) = RegistryChange.parse(change.line, defaultApp: nil, limits: configuration.registryLimits)
    else { return }
    _ = try store.apply([parsed], now: RegistrySession.now)
  }
}
