import Foundation
import PushCore
import Reactor
import Settings
import Simulator
import TLS

enum SimulateCommand: Command {
  private static let certificate = UsageForm.Item.either([.together(["--certificate", "--key"]), "--self-signed"])

  static let page = CommandPage(
    "simulate", "a provider to test against: APNs, FCM or web push",
    forms: ["apns", "fcm"].map { provider in
      .action(
        provider, "--listen", certificate,
        .group(
          "OPTIONS",
          [
            "--script", "--journal", "--client-ca", "--provider-key", "--project", "--token-lifetime", "--topic", "--streams",
            "--sandbox",
          ]))
    } + [
      .action(
        "webpush", "--listen", certificate, ["--subscriptions", "FILE", ["--app"]],
        .group("OPTIONS", ["--script", "--journal", "--provider-key", "--http1"]))
    ],
    beginsWithAction: false,
    """
    Answers like the provider, and as strictly, until interrupted. Port 0 selects a free port. Standard error names the address.
    """,
    [
      .option("listen", "HOST:PORT", "where to listen (127.0.0.1:8443)"),
      .option("certificate", "FILE", "PEM of the server's certificate chain"), .option("key", "FILE", "PEM of its key"),
      .option(
        "self-signed", "FOLDER",
        "create a certificate, its CA and a key for workers in FOLDER, unless they exist, and print the "
          + "settings by which an application sends here"),
      .option(
        "script", "FILE",
        #"JSON: what each device token (web push: the subscription's id, the end of its endpoint) provokes, such as {"<token>": {"status": 410, "reason": "Unregistered", "#
          + #""timestamp": 1732137600000}}, or one of the faults below; "*" matches every other token. A list has one entry "#
          + "per push. The file must exist at the start, and is read again on SIGHUP; connections stay open"
      ),
      .option("journal", "FILE", "one line of JSON for each request received; web push is decrypted"),
      .option(
        "subscriptions", "N",
        "webpush: write the subscriptions of N browsers to FILE, one line of JSON each. They are the same at each start"),
      .option("app", "APP", "webpush: register the subscriptions for APP, by pushfleet devices import FILE"),
      .option("client-ca", "FILE", "apns: PEM of the CA of client certificates, which are then required"),
      .option(
        "provider-key", "FILE",
        "PEM of the key that signs provider tokens or assertions: signatures are then checked. "
          + "webpush: the private VAPID key that all subscriptions are bound to"),
      .option("project", "ID", "fcm: the only project that is accepted"),
      .option("token-lifetime", "S", "fcm: lifetime of an access token in seconds (3599)"),
      .option("topic", "ID", "apns: the only bundle id that is accepted"),
      .option("streams", "N", "apns: concurrent streams per connection"), .flag("sandbox", "apns: answer as the sandbox does"),
      .flag("http1", "webpush: speak HTTP/1.1 instead of HTTP/2"),
    ],
    #"Faults of a script. With "times": N or "every": N, a fault applies to some pushes only:"#,
    [
      .operand(#"{"stall": true}"#, "accepts the push and never answers"),
      .operand(#"{"refuse": true}"#, "refuses the stream: the push was not processed"),
      .operand(#"{"reset": true}"#, "resets the stream; a number is the error code of HTTP/2"),
      .operand(#"{"close": true}"#, "closes the connection"),
      .operand(#"{"goaway": "REASON"}"#, "sends GOAWAY with the reason, after this push"),
      .operand(#"{"delay_ms": N}"#, "delays the answer by N ms; also together with a status"),
    ],
    example: "pushfleet simulate apns --listen 127.0.0.1:8443 --self-signed simulator --journal pushes.ndjson")

  static func run(_ options: Options) throws {
    guard let provider = options.operands.first else {
      throw CommandFailure(.usage, "name a provider, as in pushfleet simulate apns: \(page.actions.joined(separator: ", "))")
    }
    try Options.check(provider, among: page.actions)
    guard let platform = Platform.allCases.first(where: { $0.word == provider }) else { return }
    try options.refuseOperands(after: options["subscriptions"] == nil ? 1 : 2)
    let endpoint = try endpoint(options, port: 8443 + UInt16(platform.rawValue))
    let files = try files(options, endpoint, platform)
    let certificate = try files?.certificate ?? ownFile("certificate", "the server's certificate", options)
    let key = try files?.key ?? ownFile("key", "the key of the server's certificate", options)
    let place = (endpoint, certificate, key)
    let script = try script(options)
    let subscriptions = platform == .webpush ? try SubscriptionFile(options) : nil
    let make =
      switch platform {
      case .apns: try apns(options)
      case .fcm: try fcm(options)
      case .webpush: try webpush(options)
      }
    try serve(platform, place, script, options, files, subscriptions, make)
  }

  private static func endpoint(_ options: Options, port: UInt16) throws(CommandFailure) -> Endpoint {
    let text = options["listen"] ?? "127.0.0.1:\(port)"
    do throws(EndpointError) {
      guard text.hasSuffix(":0") else { return try Endpoint(parsing: text, defaultPort: port) }
      return Endpoint(host: try Endpoint(parsing: String(text.dropLast(2)), defaultPort: port).host, port: 0)
    } catch { throw CommandFailure(.usage, "--listen: \(error)") }
  }

  /// - Returns: nil if the caller provides certificate and key.
  private static func files(
    _ options: Options, _ endpoint: Endpoint, _ platform: Platform
  ) throws(CommandFailure) -> SimulatorFiles? {
    guard let folder = options["self-signed"] else { return nil }
    guard options["certificate"] == nil, options["key"] == nil else {
      throw CommandFailure(.usage, "--self-signed excludes --certificate and --key")
    }
    return try SimulatorFiles(folder, host: endpoint.host, platform)
  }

  private static func ownFile(_ name: String, _ purpose: String, _ options: Options) throws(CommandFailure) -> String {
    try options.required(name, "\(purpose); or create it by --self-signed FOLDER")
  }

  /// The content of the file that an option names; nil without the option.
  private static func file(_ option: String, _ options: Options) throws(CommandFailure) -> [UInt8]? {
    guard let path = options[option] else { return nil }
    guard let data = FileManager.default.contents(atPath: path) else {
      throw CommandFailure(.badInput, "--\(option): \(SafeText.path(path)) cannot be read\(SafeText.reason(path))")
    }
    return [UInt8](data)
  }

  private static func script(_ options: Options) throws(CommandFailure) -> Script {
    guard let path = options["script"], let text = try file("script", options) else { return Script() }
    do throws(ScriptError) { return try Script(parsing: text) } catch {
      throw CommandFailure(.badInput, "\(SafeText.path(path)): \(error)")
    }
  }

  private static func journal(_ options: Options) throws(CommandFailure) -> Journal {
    let path = options["journal"]
    do { return try Journal(path: path) } catch {
      throw CommandFailure(.badInput, "--journal: \(SafeText.path(path ?? "")) cannot be written: \(SafeText.reason(error))")
    }
  }

  private static func apns(_ options: Options) throws(CommandFailure) -> SimulatedService.Make {
    var configuration = Simulator.APNsConfiguration()
    configuration.clientAuthority = options["client-ca"]
    configuration.providerKey = try file("provider-key", options)
    configuration.isSandbox = options.has("sandbox")
    if let topic = options["topic"] { configuration.topics = [topic] }
    if let streams = try options.integer("streams", in: 1...100_000) { configuration.maxConcurrentStreams = streams }
    return { [configuration] in try APNsService(configuration: configuration, journal: $0, time: $1) }
  }

  private static func fcm(_ options: Options) throws(CommandFailure) -> SimulatedService.Make {
    var configuration = Simulator.FCMConfiguration()
    (configuration.project, configuration.accountKey) = (options["project"], try file("provider-key", options))
    if let lifetime = try options.integer("token-lifetime", in: 1...3_600) { configuration.tokenLifetime = lifetime }
    return { [configuration] in try FCMService(configuration: configuration, journal: $0, time: $1) }
  }

  private static func webpush(_ options: Options) throws(CommandFailure) -> SimulatedService.Make {
    var configuration = Simulator.WebPushConfiguration()
    configuration.isHTTP1 = options.has("http1")
    if let pem = try file("provider-key", options) {
      guard let point = (try? SigningKey(pem: pem))?.publicPoint else {
        throw CommandFailure(.badInput, "--provider-key: the file has no private key of P-256 in PEM")
      }
      configuration.applicationServerKey = point
    }
    return { [configuration] in WebPushService(configuration: configuration, journal: $0, time: $1) }
  }

  /// Prints the address, then serves until a signal; SIGHUP reloads the script.
  private static func serve(
    _ platform: Platform, _ place: ProviderSimulator.Place, _ script: Script, _ options: Options, _ files: SimulatorFiles?,
    _ subscriptions: SubscriptionFile?, _ make: SimulatedService.Make
  ) throws {
    let (name, endpoint) = (platform.label, place.endpoint)
    let journal = try journal(options)
    let loop = try EventLoop()
    var play: ((Script) -> Void)?
    let signals = try Signals(loop: loop, options["script"] == nil ? [2, 15] : [1, 2, 15]) { number in
      guard number == 1 else { return loop.stop() }
      do throws(CommandFailure) {
        play?(try Self.script(options))
        Terminal.notice("\(name) simulator plays its script as it is now")
      } catch {
        Terminal.notice("\(name) simulator plays the script it had: \(error.message)")
      }
    }
    defer { signals.close() }
    let simulator: ProviderSimulator
    do {
      simulator = try ProviderSimulator(make(journal, loop.time), at: place, loop: loop)
    } catch { throw failure(error, name, endpoint) }
    play = simulator.service.play
    play?(script)
    try subscriptions?.write(Endpoint(host: endpoint.host, port: simulator.port))
    Terminal.notice("\(name) simulator listens on \(Endpoint(host: endpoint.host, port: simulator.port))")
    if let files { Terminal.notice("an application sends here with\n  \(files.advice(port: simulator.port))") }
    loop.run()
    simulator.close()
    loop.turn(waitingAtMost: 0)
  }

  private static func failure(_ error: any Error, _ name: String, _ endpoint: Endpoint) -> CommandFailure {
    switch error {
    case let error as CredentialError:
      let place = error.file.map { "\(SafeText.path($0)): " } ?? ""
      return CommandFailure(.badInput, "the \(name) simulator can't start: \(place)\(error.reason)")
    case let error as SystemError where error.isInUse:
      return CommandFailure(
        .unavailable,
        "the \(name) simulator can't start: \(endpoint) is in use: end what listens there, or choose another port by --listen")
    default: return CommandFailure(.unavailable, "the \(name) simulator can't start: \(error)")
    }
  }
}
