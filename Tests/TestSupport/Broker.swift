import Foundation
import Glibc

/// A private RabbitMQ: own node, own folder, own epmd, loopback only, free ports.
///
/// Starting takes about five seconds, so tests share `Broker.shared` and keep apart by names (`uniqueName`). Whatever
/// happens to the test process, a watchdog at the other end of a pipe ends the broker and removes its folder.
public final class Broker: @unchecked Sendable {
  public let port: UInt16
  /// 0 without TLS.
  public let tlsPort: UInt16
  public let directory: String
  public let node: String
  private let distributionPort: UInt16
  private let epmdPort: UInt16
  private let erlangArguments: String
  private let lock = NSLock()
  private var server: ChildProcess?
  private var epmd: ChildProcess?
  private let watchdog: Watchdog

  /// One for the whole test process, started when first asked for.
  public static var shared: Broker { get throws { try sharedResult.get() } }
  private static let sharedResult: Result<Broker, any Error> = Result {
    let broker = try Broker()
    atexit { (try? Broker.sharedResult.get())?.stop() }
    return broker
  }

  public struct Failure: Error, CustomStringConvertible {
    public let description: String
  }

  /// Starts and waits until it takes connections.
  ///
  /// - Parameters:
  ///   - certificates: for a TLS listener: paths of CA, certificate and key.
  ///   - configuration: further lines of `rabbitmq.conf`.
  ///   - erlang: further arguments of the virtual machine, for settings that `rabbitmq.conf` doesn't have.
  public init(
    certificates: (ca: String, certificate: String, key: String)? = nil, configuration: [String] = [], erlang: String = ""
  ) throws {
    erlangArguments = erlang
    let ports = try FreePorts.take(4)
    port = ports[0]
    distributionPort = ports[1]
    epmdPort = ports[2]
    tlsPort = certificates == nil ? 0 : ports[3]
    node = "push\(port)@localhost"
    directory = NSTemporaryDirectory() + "broker-\(getpid())-\(port)"
    let files = FileManager.default
    try files.createDirectory(atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    watchdog = try Watchdog(directory: directory)
    var lines = ["listeners.tcp.1 = 127.0.0.1:\(port)", "log.file.level = info"] + configuration
    if let certificates {
      lines += [
        "listeners.ssl.1 = 127.0.0.1:\(tlsPort)", "ssl_options.cacertfile = \(certificates.ca)",
        "ssl_options.certfile = \(certificates.certificate)", "ssl_options.keyfile = \(certificates.key)",
        "ssl_options.verify = verify_none", "ssl_options.fail_if_no_peer_cert = false",
      ]
    }
    try (lines.joined(separator: "\n") + "\n").write(toFile: directory + "/rabbitmq.conf", atomically: false, encoding: .utf8)
    try "[].\n".write(toFile: directory + "/enabled_plugins", atomically: false, encoding: .utf8)
    do {
      epmd = try ChildProcess(
        ["/usr/bin/epmd", "-port", "\(epmdPort)", "-address", "127.0.0.1"], environment: environment,
        output: directory + "/epmd.log")
      watchdog.watch(epmd!.pid)
      try startServer()
    } catch {
      stop()
      throw error
    }
  }

  deinit { stop() }

  /// Without a path, which every client takes for the virtual host `/`.
  public var uri: String { "amqp://guest:guest@127.0.0.1:\(port)" }
  public var tlsURI: String { "amqps://guest:guest@127.0.0.1:\(tlsPort)" }

  /// A name no other test uses.
  public static func uniqueName(_ stem: String) -> String { "\(stem).\(UUID().uuidString.prefix(8).lowercased())" }

  /// Whether the node's directory of quorum queues has reached the disk. RabbitMQ 3.10 writes it behind, half a second after
  /// the last declaration; a node killed before forgets the new queue's log and never elects a leader for it again.
  public func isOnDisk(queue: String) -> Bool {
    let path = "\(directory)/mnesia/\(node)/quorum/\(node)/names.dets"
    return FileManager.default.contents(atPath: path).map { $0.firstRange(of: Data(queue.utf8)) != nil } ?? false
  }

  /// Kills the node as a power cut would. What was confirmed is on disk, in queues for which `isOnDisk` holds.
  public func kill9() {
    lock.withLock {
      server?.end()
      server = nil
    }
  }

  /// Starts the node again (killing it first when it runs) with the same ports and data.
  public func restart() throws {
    kill9()
    try startServer()
  }

  /// The node is stopped but its connections stay, as when a machine hangs; `resume` lets it go on.
  public func freeze() { lock.withLock { _ = server.map { kill($0.pid, SIGSTOP) } } }
  public func resume() { lock.withLock { _ = server.map { kill($0.pid, SIGCONT) } } }

  /// Ends everything that was started and removes the folder.
  public func stop() {
    lock.withLock {
      server?.end()
      server = nil
      epmd?.end()
      epmd = nil
      watchdog.dismiss()
      try? FileManager.default.removeItem(atPath: directory)
    }
  }

  /// Runs `rabbitmqctl` (about a second and a half) and returns what it prints.
  @discardableResult
  public func control(_ arguments: String...) throws -> String {
    try run(["/usr/lib/rabbitmq/bin/rabbitmqctl", "--quiet"] + arguments)
  }

  /// Has the node evaluate Erlang expressions, a hundred times as fast as `rabbitmqctl`, and returns the last one's value.
  @discardableResult
  public func evaluate(_ code: String) throws -> String {
    let input = Pipe()
    try input.fileHandleForWriting.write(contentsOf: Data((code + "\n").utf8))
    try input.fileHandleForWriting.close()
    // Two callers of one name would end each other's connection.
    let caller = "c" + UUID().uuidString
    let answer = try run(["/usr/bin/erl_call", "-sname", node, "-h", caller, "-e"], input: input.fileHandleForReading)
    guard answer.hasPrefix("{ok, ") else { throw Failure(description: "\(code): \(answer)") }
    return String(answer.dropFirst(5).dropLast())
  }

  /// A text as an Erlang binary.
  public static func binary(_ text: String) -> String {
    "<<\"\(text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\""))\">>"
  }

  /// The numbers of ready messages, as a passive declaration tells them.
  public func depths(of queues: [String]) throws -> [Int] {
    let names = queues.map(Self.binary).joined(separator: ", ")
    let answer = try evaluate(
      """
      list_to_tuple([begin {ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, N)),
        {ok, Ready, _} = rabbit_amqqueue:stat(Q), Ready end || N <- [\(names)]]).
      """)
    return answer.matches(of: /\d+/).compactMap { Int($0.output) }
  }

  /// A user whose permissions are these patterns.
  public func addUser(
    _ name: String, password: String, configure: String = ".*", write: String = ".*", read: String = ".*"
  ) throws {
    let patterns = [configure, write, read].map(Self.binary).joined(separator: ", ")
    try evaluate(
      """
      A = rabbit_auth_backend_internal, U = \(Self.binary(name)), ok = A:add_user(U, \(Self.binary(password)), <<"test">>),
      ok = A:set_permissions(U, <<"/">>, \(patterns), <<"test">>).
      """)
  }

  public func changePassword(of user: String, to password: String) throws {
    try evaluate(
      "ok = rabbit_auth_backend_internal:change_password(\(Self.binary(user)), \(Self.binary(password)), <<\"test\">>).")
  }

  /// Lets a queue hold so many messages; nil: any number again.
  public func limit(_ queue: String, to length: Int?) throws {
    let name = Self.binary(queue)
    if let length {
      let definition = Self.binary("{\"max-length\": \(length)}")
      try evaluate(
        "ok = rabbit_policy:parse_set(<<\"/\">>, \(name), \(Self.binary("^\(queue)$")), \(definition), <<\"0\">>, <<\"queues\">>, <<\"test\">>)."
      )
    } else {
      try evaluate("ok = rabbit_policy:delete(<<\"/\">>, \(name), <<\"test\">>).")
    }
  }

  public func raiseMemoryAlarm() throws { try evaluate("ok = vm_memory_monitor:set_vm_memory_high_watermark(0.0000001).") }
  public func clearMemoryAlarm() throws { try evaluate("ok = vm_memory_monitor:set_vm_memory_high_watermark(0.4).") }

  /// Closes, as an operator would, every connection whose client says something of the kind of itself.
  public func closeConnections(named word: String) throws {
    try evaluate(
      """
      [rabbit_networking:close_connection(P, "test") || P <- rabbit_networking:connections(),
        string:find(io_lib:format("~p", [(catch rabbit_reader:info(P, [client_properties]))]), "\(word)") /= nomatch].
      """)
  }

  /// Runs a program with the broker's environment; throws with its output unless it exits with 0.
  @discardableResult
  public func run(_ command: [String], input: FileHandle? = nil) throws -> String {
    let log = directory + "/run-\(UUID().uuidString).log"
    defer { try? FileManager.default.removeItem(atPath: log) }
    let child = try ChildProcess(command, environment: environment, output: log, input: input)
    let status = child.wait()
    let output = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
    guard status == 0 else { throw Failure(description: "\(command) ended with \(status): \(output)") }
    return output
  }

  private var environment: [String: String] {
    [
      "PATH": "/usr/lib/rabbitmq/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
      "LANG": "C.UTF-8",
      "HOME": directory,
      "RABBITMQ_CONF_ENV_FILE": "\(directory)/none",
      "RABBITMQ_NODENAME": node,
      "RABBITMQ_CONFIG_FILE": "\(directory)/rabbitmq.conf",
      "RABBITMQ_MNESIA_BASE": "\(directory)/mnesia",
      "RABBITMQ_LOG_BASE": "\(directory)/log",
      "RABBITMQ_LOGS": "\(directory)/log/broker.log",
      "RABBITMQ_ENABLED_PLUGINS_FILE": "\(directory)/enabled_plugins",
      "RABBITMQ_DIST_PORT": "\(distributionPort)",
      "RABBITMQ_SCHEDULER_BIND_TYPE": "u",
      "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} \(erlangArguments)",
      // The start script then replaces itself by the node instead of waiting for it.
      "RUNNING_UNDER_SYSTEMD": "true",
      "ERL_EPMD_PORT": "\(epmdPort)",
      "ERL_EPMD_ADDRESS": "127.0.0.1",
      "ERL_CRASH_DUMP": "/dev/null",
    ]
  }

  /// The node's banner ends with this when it takes connections.
  private static let readyMark = "completed with"

  private func startServer() throws {
    let child = try ChildProcess(["/usr/lib/rabbitmq/bin/rabbitmq-server"], environment: environment, output: nil)
    watchdog.watch(child.pid)
    lock.withLock { server = child }
    guard child.waitForOutput(Self.readyMark, seconds: 120) else {
      let log = (try? String(contentsOfFile: directory + "/log/broker.log", encoding: .utf8)) ?? ""
      kill9()
      throw Failure(description: "the broker did not start: \(child.outputSoFar.suffix(2000))\n\(log.suffix(4000))")
    }
  }
}
