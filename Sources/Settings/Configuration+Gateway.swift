import Reactor

extension Configuration {
  /// Where a gateway serves its figures; nil for nowhere.
  public var gatewayFigures: Endpoint? { gateway?.metrics ?? metrics }

  /// What a gateway's doors are made of, by its settings.
  var doorMaterials: [(setting: String, material: Material)] {
    let (http, apns) = (gateway?.http?.identity, gateway?.apns)
    let all: [(String, Material?)] = [
      ("gateway.http.certificate", http?.certificate), ("gateway.http.key", http?.key),
      ("gateway.apns.certificate", apns?.certificate), ("gateway.apns.key", apns?.key),
      ("gateway.apns.clients", apns?.clients),
    ]
    return all.compactMap { setting, material in material.map { (setting, $0) } }
  }

  /// Every file that a gateway's doors are made of, and the configuration's own where it has one.
  public func gatewayFiles(_ own: String?) -> [String] {
    Set(doorMaterials.compactMap(\.material.path) + [own].compactMap(\.self)).sorted()
  }
}
