import CPostgres
import Glibc

/// The servers of a location, to be tried one by one. libpq could try them too. But in non-blocking mode it has no time limit
/// for each, so a host that drops packets would hide the hosts after it.
struct PostgresHosts {
  typealias Parameters = [(name: String, value: String)]

  /// Parameters that override the location to reach one server, in the order of attempts. At least one.
  private(set) var attempts: [Parameters] = []
  /// Default parameters for each attempt. The location overrides them.
  private(set) var defaults: [Parameters] = []

  init(_ location: String) {
    let said = PostgresLocation.parameters(location)
    let names = Self.list(said["host"])
    let addresses = Self.list(said["hostaddr"])
    let ports = Self.list(said["port"])
    let count = max(names.count, addresses.count, 1)
    // Any stand-by is preferred to other servers, so there are two rounds, as in libpq.
    let isStandbyPreferred = said["target_session_attrs"] == "prefer-standby"
    for attributes in isStandbyPreferred ? ["standby", "any"] : [nil] {
      for index in 0..<count {
        var one: Parameters = []
        if count > 1 {
          if index < names.count { one.append(("host", names[index])) }
          if index < addresses.count { one.append(("hostaddr", addresses[index])) }
          if ports.count == count { one.append(("port", ports[index])) }
        }
        if let attributes { one.append(("target_session_attrs", attributes)) }
        attempts.append(one)
        let address = index < addresses.count ? addresses[index] : ""
        let place = !address.isEmpty ? address : index < names.count ? names[index] : ""
        defaults.append(Self.isLocal(place) ? [] : Self.verification(said))
      }
    }
  }

  private static func list(_ text: String?) -> [String] {
    text.map { $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init) } ?? []
  }

  /// True for a socket folder or this machine. libpq's default is also local.
  private static func isLocal(_ place: String) -> Bool {
    place.isEmpty || place.hasPrefix("/") || place.hasPrefix("@") || place == "localhost" || place.hasSuffix(".localhost")
      || place == "::1" || (place.hasPrefix("127.") && place.allSatisfy { $0.isNumber || $0 == "." })
  }

  /// Remote servers are verified, unless the location or libpq's environment specifies otherwise.
  private static func verification(_ said: [String: String]) -> Parameters {
    guard said["sslmode"] == nil, getenv("PGSSLMODE") == nil else { return [] }
    var parameters: Parameters = [("sslmode", "verify-full")]
    let own = getenv("HOME").map { String(cString: $0) + "/.postgresql/root.crt" } ?? ""
    if said["sslrootcert"] == nil, getenv("PGSSLROOTCERT") == nil, FileFacts.size(own) == nil {
      parameters.append(("sslrootcert", systemAuthorities))
    }
    return parameters
  }

  private static let systemAuthorities = "/etc/ssl/certs/ca-certificates.crt"
}
