import Foundation
import Glibc

/// A private RabbitMQ with a separate node, folder and epmd, on free loopback ports.
///
/// It takes about five seconds to start, so tests share `Broker.shared` and use unique names (`uniqueName`). However the test
/// process ends, a watchdog ends the broker and removes its folder.
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

  /// The broker of the whole test process, started at the first use.
  public static var shared: Broker { get throws { try sharedResult.get() } }
  private static let sharedResult: Result<Broker, any Error> = Result {
    let broker = try Broker()
    atexit { (try? Broker.sharedResult.get())?.stop() }
    return broker
  }

  public struct Failure: Error, CustomStringConvertible {
    public let description: String
  }

  /// Starts the broker and waits until it accepts connections.
  ///
  /// - Parameters:
  ///   - certificates: for a TLS listener: paths of CA, certificate and key.
  ///   - provesUsers: client certificates prove users, by their common names.
  ///   - configuration: further lines of `rabbitmq.conf`.
  ///   - erlang: further arguments of the virtual machine, for settings that `rabbitmq.conf` doesn't have.
  public init(
    certificates: (ca: String, certificate: String, key: String)? = nil, provesUsers: Bool = false,
    configuration: [String] = [], erlang: String = ""
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
        "ssl_options.verify = \(provesUsers ? "verify_peer" : "verify_none")", "ssl_options.fail_if_no_peer_cert = false",
      ]
    }
    if provesUsers {
      let mechanisms = ["PLAIN", "AMQPLAIN", "EXTERNAL"].enumerated().map { "auth_mechanisms.\($0 + 1) = \($1)" }
      lines += mechanisms + ["ssl_cert_login_from = common_name"]
    }
    try (lines.joined(separator: "\n") + "\n").write(toFile: directory + "/rabbitmq.conf", atomically: false, encoding: .utf8)
    let plugins = ["rabbitmq_consistent_hash_exchange"] + (provesUsers ? ["rabbitmq_auth_mechanism_ssl"] : [])
    try "[\(plugins.joined(separator: ", "))].\n".write(
      toFile: directory + "/enabled_plugins", atomically: false, encoding: .utf8)
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

  /// Without a path, which all clients read as the virtual host `/`.
  public var uri: String { "amqp://guest:guest@127.0.0.1:\(port)" }
  public var tlsURI: String { "amqps://guest:guest@127.0.0.1:\(tlsPort)" }

  public static func uniqueName(_ stem: String) -> String { "\(stem).\(UUID().uuidString.prefix(8).lowercased())" }

  /// True if the node has written the queue's entry in its directory of quorum queues. RabbitMQ 3.10 writes it half a second
  /// after the last declaration. A node killed before that forgets the queue's log and never elects a leader for it again.
  public func isOnDisk(queue: String) -> Bool {
    let path = "\(directory)/mnesia/\(node)/quorum/\(node)/names.dets"
    return FileManager.default.contents(atPath: path).map { $0.firstRange(of: Data(queue.utf8)) != nil } ?? false
  }

  /// Kills the node as a power cut would. Confirmed messages are on disk if `isOnDisk` holds for their queue.
  public func kill9() {
    lock.withLock {
      server?.end()
      server = nil
    }
  }

  /// Starts the node again with the same ports and data. Kills it first if it runs.
  public func restart() throws {
    kill9()
    try startServer()
  }

  /// Stops the node but keeps its connections, like a hanging machine. `resume` continues it.
  public func freeze() { lock.withLock { _ = server.map { kill($0.pid, SIGSTOP) } } }
  public func resume() { lock.withLock { _ = server.map { kill($0.pid, SIGCONT) } } }

  /// Ends everything and removes the folder.
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

  /// Runs `rabbitmqctl` (about 1.5 seconds) and returns its output.
  @discardableResult
  public func control(_ arguments: String...) throws -> String {
    try run(["/usr/lib/rabbitmq/bin/rabbitmqctl", "--quiet"] + arguments)
  }

  /// Evaluates Erlang expressions on the node and returns the last value. A hundred times as fast as `rabbitmqctl`.
  @discardableResult
  public func evaluate(_ code: String) throws -> String {
    let input = Pipe()
    try input.fileHandleForWriting.write(contentsOf: Data((code + "\n").utf8))
    try input.fileHandleForWriting.close()
    // Two callers with the same name would end each other's connection.
    let caller = "c" + UUID().uuidString
    let answer = try run(["/usr/bin/erl_call", "-sname", node, "-h", caller, "-e"], input: input.fileHandleForReading)
    guard answer.hasPrefix("{ok, ") else { throw Failure(description: "\(code): \(answer)") }
    return String(answer.dropFirst(5).dropLast())
  }

  public static func binary(_ text: String) -> String {
    "<<\"\(text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\""))\">>"
  }

  /// The numbers of ready messages, as a passive declaration returns them.
  public func depths(of queues: [String]) throws -> [Int] {
    let names = queues.map(Self.binary).joined(separator: ", ")
    let answer = try evaluate(
      """
      list_to_tuple([begin {ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, N)),
        {ok, Ready, _} = rabbit_amqqueue:stat(Q), Ready end || N <- [\(names)]]).
      """)
    return answer.matches(of: /\d+/).compactMap { Int($0.output) }
  }

  /// The number of messages of a quorum queue, including those that a consumer holds. Not delayed, unlike `rabbitmqctl`'s.
  public func messages(in queue: String) throws -> Int? {
    let answer = try evaluate(
      """
      {ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, \(Self.binary(queue)))),
      {ok, {_, N}, _} = ra:leader_query(amqqueue:get_pid(Q), fun rabbit_fifo:query_messages_total/1), N.
      """)
    return answer.firstMatch(of: /\d+/).flatMap { Int($0.output) }
  }

  /// Deletes the queues whose names have this prefix, and doesn't wait for it.
  public func deleteQueues(prefix: String) throws {
    try evaluate(
      """
      spawn(fun() ->
        [catch rabbit_amqqueue:delete(Q, false, false, <<"test">>) || Q <- rabbit_amqqueue:list(<<"/">>),
          string:prefix(element(4, amqqueue:get_name(Q)), \(Self.binary(prefix))) /= nomatch]
      end).
      """)
  }

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

  /// Limits a queue to this many messages; nil removes the limit.
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

  /// When this returns, the broker has told its connections, so it reads no later publication.
  public func raiseMemoryAlarm() throws {
    try evaluate("ok = vm_memory_monitor:set_vm_memory_high_watermark(0.0000001), [_ | _] = rabbit_alarm:get_alarms().")
  }
  public func clearMemoryAlarm() throws { try evaluate("ok = vm_memory_monitor:set_vm_memory_high_watermark(0.4).") }

  /// The client properties of all connections, as text.
  public func clientProperties() throws -> String {
    try evaluate(
      """
      lists:flatten(io_lib:format("~0p", [[(catch rabbit_reader:info(P, [client_properties])) || P <- rabbit_networking:connections()]])).
      """)
  }

  /// Closes, like an operator, all connections whose client properties contain the word.
  public func closeConnections(named word: String) throws {
    try evaluate(
      """
      [rabbit_networking:close_connection(P, "test") || P <- rabbit_networking:connections(),
        string:find(io_lib:format("~p", [(catch rabbit_reader:info(P, [client_properties]))]), "\(word)") /= nomatch].
      """)
  }

  /// Closes, like an operator, all connections that consume the queue.
  public func closeConnections(consuming queue: String) throws {
    try evaluate(
      """
      [rabbit_networking:close_connection(C, "test") || {P, _} <- \(Self.consumers(of: queue)),
        {connection, C} <- rabbit_channel:info(P, [connection])].
      """)
  }

  /// Waits until a consumer of the queue has this tag, and makes the broker close its channel with an error.
  public func closeChannel(consuming queue: String, tag: String) throws {
    try evaluate(
      """
      Close = fun Close(0) -> exit(no_consumer); Close(Left) ->
        case [P || {P, T} <- \(Self.consumers(of: queue)), T == \(Self.binary(tag))] of
          [] -> timer:sleep(1), Close(Left - 1);
          [P] -> rabbit_channel:do(P, {'basic.ack', 1000000, false})
        end end, Close(60000).
      """)
  }

  /// Erlang's list of a queue's consumers: channel and tag. RabbitMQ 3.10 keeps entries of channels that it has closed.
  private static func consumers(of queue: String) -> String {
    """
    [{P, T} || E <- ets:tab2list(consumer_created), {Q, P, T} <- [element(1, E)],
      Q == rabbit_misc:r(<<"/">>, queue, \(binary(queue))), is_process_alive(P)]
    """
  }

  /// Runs a program with the broker's environment. Throws with its output if the exit status isn't 0.
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
      // The start script then replaces itself with the node instead of waiting for it.
      "RUNNING_UNDER_SYSTEMD": "true",
      "ERL_EPMD_PORT": "\(epmdPort)",
      "ERL_EPMD_ADDRESS": "127.0.0.1",
      "ERL_CRASH_DUMP": "/dev/null",
    ]
  }

  /// The end of the node's banner when it accepts connections.
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
