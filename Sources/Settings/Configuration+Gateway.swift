import Reactor

extension Configuration {
  /// The gateway's address for metrics; nil for none.
  public var gatewayFigures: Endpoint? { gateway?.metrics ?? metrics }

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
