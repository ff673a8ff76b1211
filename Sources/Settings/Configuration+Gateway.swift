import Reactor

extension Configuration {
  /// The gateway's address for metrics; nil for none.
  public var gatewayFigures: Endpoint? { gateway?.isConsole == true ? nil : gateway?.metrics ?? metrics }

  /// The settings of `pushfleet console`.
  /// - Throws: if others could read the cookie of a login on its way.
  public func console(at listen: Endpoint) throws(ConfigurationError) -> Configuration {
    let identity = gateway?.http?.identity
    guard identity != nil || ["localhost", "::1"].contains(listen.host) || listen.host.hasPrefix("127.") else {
      throw ConfigurationError(
        key: "gateway.http.certificate", problem: "is missing: beyond this machine (\(listen)) the console needs TLS")
    }
    var copy = self
    copy.gateway = GatewaySettings(
      console: GatewayHTTPSettings(listen: listen, identity: identity, login: gateway?.http?.login))
    return copy
  }

  var doorMaterials: [(setting: String, material: Material)] {
    let (http, apns) = (gateway?.http?.identity, gateway?.apns)
    let all: [(String, Material?)] = [
      ("gateway.http.certificate", http?.certificate), ("gateway.http.key", http?.key),
      ("gateway.apns.certificate", apns?.certificate), ("gateway.apns.key", apns?.key),
      ("gateway.apns.clients", apns?.clients),
    ]
    return all.compactMap { setting, material in material.map { (setting, $0) } }
  }

  /// The files of the gateway's certificates and keys, and the configuration file.
  public func gatewayFiles(_ own: String?) -> [String] {
    Set(doorMaterials.compactMap(\.material.path) + [own].compactMap(\.self)).sorted()
  }
}
