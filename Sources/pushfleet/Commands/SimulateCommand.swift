import Foundation
import PushCore
import Reactor
import Settings
import Simulator
import TLS

enum SimulateCommand: Command {
  static let page = CommandPage(
    "simulate", "a provider to test against: APNs or FCM",
    forms: ["apns", "fcm"].map { provider in
      .action(
        provider, "--listen", .either([.together(["--certificate", "--key"]), "--self-signed"]),
        .group(
          "OPTIONS",
          [
            "--script", "--journal", "--client-ca", "--provider-key", "--project", "--token-lifetime", "--topic", "--streams",
            "--sandbox",
          ]))
    },
    beginsWithAction: false,
    """
    Answers as the provider does, as strictly, until interrupted. Port 0 takes a free one; the line that says where it
    listens goes to standard error.
    """,
    [
      .option("listen", "HOST:PORT", "where to listen (127.0.0.1:8443)"),
      .option("certificate", "FILE", "PEM of the server's certificate chain"), .option("key", "FILE", "PEM of its key"),
      .option(
        "self-signed", "FOLDER",
        "make the certificate, its authority and a key for workers in FOLDER, keep what is there "
          + "already, and say what a configuration needs to send here"),
      .option(
        "script", "FILE",
        #"JSON: what each device token provokes, such as {"<token>": {"status": 410, "reason": "Unregistered", "#
          + #""timestamp": 1732137600000}}, or one of the faults below; "*" stands for every other token. A list is gone "#
          + "through push by push. It must exist when the simulator starts, and is read again on SIGHUP, whose connections stay"
      ),
      .option("journal", "FILE", "one line of JSON for each request received"),
      .option("client-ca", "FILE", "apns: PEM of the authority of client certificates, which are then demanded"),
      .option("provider-key", "FILE", "PEM of the key that signs provider tokens or assertions: signatures are then checked"),
      .option("project", "ID", "fcm: the project that may be sent for, and no other"),
      .option("token-lifetime", "S", "fcm: seconds that an access token is good for (3599)"),
      .option("topic", "ID", "apns: the bundle id that may be sent to, and no other"),
      .option("streams", "N", "streams at once on a connection"), .flag("sandbox", "apns: answer as the sandbox does"),
    ],
    #"Faults of a script, each beside "times": N or "every": N where it isn't for every push:"#,
    [
      .operand(#"{"stall": true}"#, "takes the push and never answers"),
      .operand(#"{"refuse": true}"#, "refuses the stream: the push was not processed"),
      .operand(#"{"reset": true}"#, "resets the stream; a number is the error code of HTTP/2"),
      .operand(#"{"close": true}"#, "closes the connection"),
      .operand(#"{"goaway": "REASON"}"#, "says goodbye with the reason, after this push"),
      .operand(#"{"delay_ms": N}"#, "waits before the answer; also beside a status"),
    ],
    example: "pushfleet simulate apns --listen 127.0.0.1:8443 --self-signed simulator --journal pushes.ndjson")

  static func run(_ options: Options) throws {
    guard let provider = options.operands.first, options.operands.count == 1 else {
      throw CommandFailure(.usage, "name one provider: pushfleet simulate apns, or pushfleet simulate fcm")
    }
    try Options.check(provider, among: page.actions)
    try run(options, isAPNs: provider == "apns")
  }

  /// Where to listen; loopback unless said otherwise.
  private static func endpoint(_ options: Options, port: UInt16) throws(CommandFailure) -> Endpoint {
    let text = options["listen"] ?? "127.0.0.1:\(port)"
    do throws(EndpointError) {
      guard text.hasSuffix(":0") else { return try Endpoint(parsing: text, defaultPort: port) }
      return Endpoint(host: try Endpoint(parsing: String(text.dropLast(2)), defaultPort: port).host, port: 0)
    } catch {
      throw CommandFailure(.usage, "--listen: \(error)")
    }
  }

  /// - Returns: nil where certificate and key are the caller's own.
  private static func files(_ options: Options, _ endpoint: Endpoint, isAPNs: Bool) throws(CommandFailure) -> SimulatorFiles? {
    guard let folder = options["self-signed"] else { return nil }
    guard options["certificate"] == nil, options["key"] == nil else {
      throw CommandFailure(.usage, "--self-signed excludes --certificate and --key")
    }
    return try SimulatorFiles(folder, host: endpoint.host, isAPNs: isAPNs)
  }

  /// Of the certificate or its key, where it isn't made.
  private static func ownFile(_ name: String, _ purpose: String, _ options: Options) throws(CommandFailure) -> String {
    try options.required(name, "\(purpose); or let --self-signed FOLDER make what is needed")
  }

  private static func file(_ path: String, _ option: String) throws(CommandFailure) -> [UInt8] {
    guard let data = FileManager.default.contents(atPath: path) else {
      throw CommandFailure(.badInput, "--\(option): \(Shown.path(path)) cannot be read\(Shown.reason(path))")
    }
    return [UInt8](data)
  }

  private static func script(_ options: Options) throws(CommandFailure) -> Script {
    guard let path = options["script"] else { return Script() }
    let text = try file(path, "script")
    do throws(ScriptError) { return try Script(parsing: text) } catch {
      throw CommandFailure(.badInput, "\(Shown.path(path)): \(error)")
    }
  }

  private static func journal(_ options: Options) throws(CommandFailure) -> Journal {
    let path = options["journal"]
    do { return try Journal(path: path) } catch {
      throw CommandFailure(.badInput, "--journal: \(Shown.path(path ?? "")) cannot be written")
    }
  }

  /// A simulator that listens: where, what has it play another script, what ends it.
  private typealias Running = (port: UInt16, play: (Script) -> Void, close: () -> Void)

  /// Says where it listens, then serves until a signal; SIGHUP has it read its script again.
  private static func serve(
    _ name: String, _ endpoint: Endpoint, _ options: Options, _ files: SimulatorFiles?, _ loop: EventLoop,
    start: () throws -> Running
  ) throws {
    var play: ((Script) -> Void)?
    let signals = try Signals(loop: loop, options["script"] == nil ? [2, 15] : [1, 2, 15]) { number in
      guard number == 1 else { return loop.stop() }
      do throws(CommandFailure) {
        play?(try script(options))
        Terminal.say("pushfleet: \(name) simulator plays its script as it is now")
      } catch {
        Terminal.say("pushfleet: \(name) simulator plays the script it had: \(error.message)")
      }
    }
    defer { signals.close() }
    let running: Running
    do { running = try start() } catch let error as CredentialError {
      let place = error.file.map { "\(Shown.path($0)): " } ?? ""
      throw CommandFailure(.badInput, "the \(name) simulator can't start: \(place)\(error.reason)")
    } catch let error as SystemError where error.isInUse {
      throw CommandFailure(
        .unavailable,
        "the \(name) simulator can't start: \(endpoint) is in use: end what listens there, or choose another port by --listen")
    } catch {
      throw CommandFailure(.unavailable, "the \(name) simulator can't start: \(error)")
    }
    play = running.play
    Terminal.say("pushfleet: \(name) simulator listens on \(Endpoint(host: endpoint.host, port: running.port))")
    if let files { Terminal.say("pushfleet: an application sends here with\n  \(files.advice(port: running.port))") }
    loop.run()
    running.close()
    loop.turn(waitingAtMost: 0)
  }
  private static func run(_ options: Options, isAPNs: Bool) throws {
    let endpoint = try endpoint(options, port: isAPNs ? 8443 : 8444)
    let files = try files(options, endpoint, isAPNs: isAPNs)
    let certificate = try files?.certificate ?? ownFile("certificate", "the server's certificate", options)
    let key = try files?.key ?? ownFile("key", "the key of the server's certificate", options)
    let providerKey = try options["provider-key"].map { path throws(CommandFailure) in try file(path, "provider-key") }
    let streams = isAPNs ? try options.integer("streams", in: 1...100_000) : nil
    let tokenLifetime = isAPNs ? nil : try options.integer("token-lifetime", in: 1...3_600)
    let script = try script(options)
    let journal = try journal(options)
    let loop = try EventLoop()
    try serve((isAPNs ? Platform.apns : .fcm).label, endpoint, options, files, loop) {
      guard isAPNs else {
        var configuration = FCMConfiguration()
        (configuration.host, configuration.port) = (endpoint.host, endpoint.port)
        (configuration.certificate, configuration.key, configuration.script) = (certificate, key, script)
        (configuration.project, configuration.accountKey) = (options["project"], providerKey)
        if let tokenLifetime { configuration.tokenLifetime = tokenLifetime }
        let simulator = try FCMSimulator(configuration: configuration, loop: loop, journal: journal)
        return (simulator.port, simulator.service.play, simulator.close)
      }
      var configuration = APNsConfiguration()
      (configuration.host, configuration.port) = (endpoint.host, endpoint.port)
      (configuration.certificate, configuration.key, configuration.script) = (certificate, key, script)
      (configuration.clientAuthority, configuration.providerKey) = (options["client-ca"], providerKey)
      configuration.isSandbox = options.has("sandbox")
      if let topic = options["topic"] { configuration.topics = [topic] }
      if let streams { configuration.maxConcurrentStreams = streams }
      let simulator = try APNsSimulator(configuration: configuration, loop: loop, journal: journal)
      return (simulator.port, simulator.service.play, simulator.close)
    }
  }
}
