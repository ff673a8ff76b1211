import Foundation

/// A private PostgreSQL server: a new cluster in a temporary folder, without durability, reachable only through a Unix socket.
/// It ends with the test process.
public final class Postgres: @unchecked Sendable {
  /// The shared server, started at the first use. Nil if PostgreSQL isn't installed, so that its tests are skipped; a failure
  /// where tests must not be skipped.
  public static let shared: Result<Postgres, any Error>? =
    binaries.map { folder in Result { try Postgres(binaries: folder) } }
    ?? (isNothingLeftOut ? .failure(Failure(description: "PostgreSQL isn't installed")) : nil)

  private static let binaries: String? = {
    let root = "/usr/lib/postgresql"
    let versions = (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []
    return versions.compactMap { Int($0) }.sorted().last.map { "\(root)/\($0)/bin" }
  }()

  public struct Failure: Error, CustomStringConvertible {
    public let description: String
  }

  private let folder: String
  private let binaries: String
  private let guardian: ChildProcess
  private let life = Pipe()
  /// The server's process, for tests that stop or kill it.
  public let serverID: pid_t

  private static let port = 5432

  /// PostgreSQL refuses to run as root, so root runs it as the user `postgres`.
  private static let prefix: [String] =
    geteuid() == 0 ? ["/usr/bin/setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] : []

  /// - Parameter settings: further `name=value` settings of the server.
  public convenience init(settings: [String] = []) throws {
    guard let binaries = Self.binaries else { throw Failure(description: "PostgreSQL isn't installed") }
    try self.init(binaries: binaries, settings: settings)
  }

  private init(binaries: String, settings: [String] = []) throws {
    self.binaries = binaries
    folder = NSTemporaryDirectory() + "/pushfleet-pg-\(UUID().uuidString.prefix(8))"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    if !Self.prefix.isEmpty { _ = try Self.run(["/usr/bin/chown", "postgres", folder]) }
    _ = try Self.run(
      Self.prefix + [
        "\(binaries)/initdb", "-D", "\(folder)/data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync",
      ])

    let server =
      Self.prefix + [
        "\(binaries)/postgres", "-D", "\(folder)/data", "-k", folder, "-p", "\(Self.port)", "-c", "listen_addresses=", "-c",
        "fsync=off",
        "-c", "full_page_writes=off", "-c", "shared_buffers=64MB", "-c", "max_connections=40", "-c", "autovacuum=off",
      ] + settings.flatMap { ["-c", $0] }
    // The guardian's input ends with this process. The guardian then ends the server and removes the folder.
    guardian = try ChildProcess(
      ["/bin/sh", "-c", Self.script, "guardian", folder] + server, output: nil, input: life.fileHandleForReading)
    try life.fileHandleForReading.close()
    guard guardian.waitForLines(1, seconds: 60),
      let id = pid_t(guardian.outputSoFar.trimmingCharacters(in: .whitespacesAndNewlines))
    else { throw Failure(description: "PostgreSQL didn't start: \(guardian.outputSoFar)") }
    serverID = id
    try awaitReadiness()
  }

  private static let script = """
    folder=$1; shift
    "$@" </dev/null >"$folder/log" 2>&1 &
    server=$!
    echo $server
    read -r _
    kill -QUIT $server
    kill -CONT $server
    wait $server
    rm -rf -- "$folder"
    """

  deinit { stop() }

  public func stop() { try? life.fileHandleForWriting.close() }

  public func awaitReadiness() throws {
    let isReady = eventually { (try? Self.run(["\(binaries)/pg_isready", "-h", folder, "-p", "\(Self.port)", "-q"])) != nil }
    guard !isReady else { return }
    throw Failure(
      description: "PostgreSQL doesn't answer: \((try? String(contentsOfFile: folder + "/log", encoding: .utf8)) ?? "")")
  }

  public func location(_ database: String) -> String {
    "postgresql://postgres@/\(database)?host=\(folder.replacingOccurrences(of: "/", with: "%2F"))&port=\(Self.port)"
  }

  public func makeDatabase() throws -> String {
    let name = "t" + UUID().uuidString.replacingOccurrences(of: "-", with: "").lowercased()
    try execute("CREATE DATABASE \(name)")
    return location(name)
  }

  /// Runs SQL with psql, like an operator. Returns the unaligned output.
  @discardableResult
  public func execute(_ sql: String, at location: String? = nil) throws -> String {
    try Self.run(["\(binaries)/psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", location ?? self.location("postgres"), "-c", sql])
  }

  @discardableResult
  private static func run(_ arguments: [String]) throws -> String {
    let (status, text) = try ChildProcess.run(arguments, directory: "/")
    guard status == 0 else { throw Failure(description: "\(arguments[0]) ended with \(status): \(text)") }
    return text.trimmingCharacters(in: .newlines)
  }
}
