import CPostgres
import Glibc

/// The servers that a location names, each to be tried by itself.
///
/// libpq would try them in turn too, but keeps no time limit for each where it mustn't block: a host that swallows packets would hide those
/// behind it.
struct PostgresHosts {
  typealias Parameters = [(name: String, value: String)]

  /// What to lay over the location to reach one server, in the order in which they are to be tried: at least one.
  let attempts: [Parameters]
  /// What holds where the location says nothing, for each of the attempts.
  let defaults: [Parameters]

  /// Of a location that was checked, or of anything that libpq reads.
  init(_ location: String) {
    let said = PostgresLocation.parameters(location)
    let names = Self.list(said["host"])
    let addresses = Self.list(said["hostaddr"])
    let ports = Self.list(said["port"])
    let count = max(names.count, addresses.count, 1)
    // Any stand-by before any other server: two rounds, as libpq does it.
    let isStandbyPreferred = said["target_session_attrs"] == "prefer-standby"
    var attempts: [Parameters] = []
    var defaults: [Parameters] = []
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
    self.attempts = attempts
    self.defaults = defaults
  }

  private static func list(_ text: String?) -> [String] {
    text.map { $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init) } ?? []
  }

  /// A socket's folder, or this machine by its own names; libpq's default is local too.
  private static func isLocal(_ place: String) -> Bool {
    place.isEmpty || place.hasPrefix("/") || place.hasPrefix("@") || place == "localhost" || place.hasSuffix(".localhost")
      || place == "::1" || (place.hasPrefix("127.") && place.allSatisfy { $0.isNumber || $0 == "." })
  }

  /// A server elsewhere is verified, unless the location or libpq's environment says how to treat it.
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
