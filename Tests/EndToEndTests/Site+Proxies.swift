import Foundation
import TestSupport
import Testing

/// Debian's forward proxies. As private instances on loopback they demand a user, and open tunnels only to some ports.
enum ProxyKind: String, CaseIterable, CustomTestStringConvertible {
  case tinyproxy, squid

  var testDescription: String { rawValue }

  /// The user and password in an address; the password is correct-horse.
  static let login = "pushfleet:correct%2Dhorse@"

  fileprivate func command(_ configuration: String) -> [String] {
    switch self {
    case .tinyproxy: ["/usr/bin/tinyproxy", "-d", "-c", configuration]
    case .squid: ["/usr/sbin/squid", "-N", "-f", configuration]
    }
  }

  fileprivate func configuration(port: UInt16, ports: [Int], folder: String) -> String {
    switch self {
    case .tinyproxy:
      """
      Port \(port)
      Listen 127.0.0.1
      Timeout 600
      BasicAuth pushfleet correct-horse
      \(ports.map { "ConnectPort \($0)" }.joined(separator: "\n"))

      """
    case .squid:
      """
      http_port 127.0.0.1:\(port)
      pid_filename \(folder)/squid-\(port).pid
      coredump_dir \(folder)
      cache_log /dev/null
      access_log none
      netdb_filename none
      pinger_enable off
      cache deny all
      auth_param basic program /usr/lib/squid/basic_ncsa_auth \(folder)/squid.users
      acl known proxy_auth REQUIRED
      acl providers port \(ports.map { "\($0)" }.joined(separator: " "))
      http_access deny !known
      http_access allow CONNECT providers
      http_access deny all

      """
    }
  }

  /// The password's hash, as `openssl passwd -6 -salt pushfleet correct-horse` prints it.
  fileprivate static let users =
    "pushfleet:$6$pushfleet$//MWvultFydQEK3h2ww9idzeih8/jgTBPBFehXAiv0s3vEyNMqyNEFyReBuArKP3FWcIYP/7TrR7xDLeE/7sq0\n"
}

extension Site {
  /// - Parameter ports: the ports that tunnels may lead to.
  /// - Returns: the proxy's port.
  func startProxy(_ kind: ProxyKind, ports: [Int]) throws -> UInt16 {
    let port = try FreePorts.take(1)[0]
    try write(ProxyKind.users, to: "squid.users")
    let text = kind.configuration(port: port, ports: ports, folder: folder.path)
    let child = try startForeign(kind.command(try write(text, to: "\(kind)-\(port).conf")))
    let probe = HTTPProbe(port: port)
    let isSettled = eventually { !child.isRunning || probe.connection().map { close($0) } != nil }
    guard isSettled, child.isRunning else { throw Broken("\(kind) did not start: \(child.outputSoFar)") }
    return port
  }

  /// Starts Python's proxy, which asks for no password and prints the tunnels that are requested.
  func startFaultyProxy(_ options: [String] = []) throws -> (process: ChildProcess, port: Int) {
    let child = try startForeign(["/usr/bin/python3", Self.support("connect_proxy.py")] + options)
    guard child.waitForLines(1, seconds: 90), let port = Int(child.outputSoFar.prefix { $0.isNumber }) else {
      throw Broken("no proxy: \(child.outputSoFar)")
    }
    return (child, port)
  }
}
