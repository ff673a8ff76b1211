import Reactor

extension Configuration {
  /// Where a gateway serves its figures; nil for nowhere.
  public var gatewayFigures: Endpoint? { gateway?.metrics ?? metrics }

  /// Every file that a gateway's doors are made of, and the configuration's own where it has one.
  public func gatewayFiles(_ own: String?) -> [String] {
    let (http, apns) = (gateway?.http, gateway?.apns)
    let materials = [http?.identity?.certificate, http?.identity?.key, apns?.certificate, apns?.key, apns?.clients]
    return Set(materials.compactMap { $0?.path } + [own].compactMap(\.self)).sorted()
  }
}
