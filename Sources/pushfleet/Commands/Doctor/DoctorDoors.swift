import DeviceRegistry
import Providers
import PushCore
import Reactor
import Settings

/// Checks the addresses that a worker and a gateway listen on: free, or used by which program.
final class DoctorDoors: DoctorLook {
  /// Seconds.
  private static let timeout = 5.0

  private let configuration: Configuration

  init(_ configuration: Configuration) throws {
    self.configuration = configuration
    try super.init()
  }

  func look() -> [Finding] {
    lookAtCertificates()
    // Metrics first: they show whether a gateway runs here.
    var places = configuration.doorAddresses.reversed() + []
    if let metrics = configuration.metrics, configuration.gateway == nil || configuration.gateway?.metrics != nil {
      places.insert(("metrics", metrics), at: 0)
    }
    for place in places { look(at: place) }
    return findings
  }

  /// Unusable and expired certificates are reported by the configuration check.
  private func lookAtCertificates() {
    let loaded = [try? configuration.gateway?.http?.loadCertificate(), try? configuration.gateway?.apns?.loadCertificate()]
    for certificate in loaded.compactMap(\.self) {
      let end = certificate.expiry.notAfter
      let date = String(decoding: Timestamp.text(end * 1_000).prefix(10), as: UTF8.self)
      let isNear = ExpiryWatch.mark(notAfter: end, at: RegistrySession.now / 1_000) != nil
      let remedy = isNear ? "renew it; a running gateway loads the new file" : nil
      report(isNear ? .warning : .ok, certificate.setting, "ends on \(date)", remedy)
    }
  }

  private func look(at place: (setting: String, address: Endpoint)) {
    do {
      try Listener(loop: loop, host: place.address.host, port: place.address.port) { _ in nil }.close()
      report(.ok, place, "free", nil)
    } catch let error as SystemError where error.isInUse {
      lookWhoIsThere(place)
    } catch { report(error, place) }
  }

  private func report(_ error: any Error, _ place: (setting: String, address: Endpoint)) {
    if let error = error as? SystemError, error.isOfNoAddress {
      return report(
        .warning, place, "this machine has no such address",
        "if it runs here, use an address of this machine, or 0.0.0.0 for all addresses")
    }
    report(.error, place, "can't be listened on: \(error)", "choose another address or port, or give this user the right to it")
  }

  // MARK: in use

  /// True if a gateway's metrics or its HTTP listener without TLS has answered.
  private var hasGateway = false

  /// Asks metrics and the HTTP listener without TLS what they are. A TLS listener doesn't answer without a client certificate:
  /// if a gateway runs, it is assumed to own the port, unless the machine names another program.
  private func lookWhoIsThere(_ place: (setting: String, address: Endpoint)) {
    let advice = "`ss -ltnp 'sport = :\(place.address.port)'` names the program that uses it: stop it, or choose another port"
    let isFigures = place.setting.hasSuffix("metrics")
    guard isFigures || place.setting == "gateway.http.listen" && configuration.gateway?.http?.identity == nil else {
      let program = DoctorMachine.listener(on: place.address.port)
      if let program, program != DoctorMachine.program {
        report(.warning, place, "in use by \(program), which is not a gateway", advice)
      } else if hasGateway || program != nil {
        report(.ok, place, "in use; a gateway runs here", nil)
      } else {
        report(.warning, place, "in use by an unknown program", "if no gateway runs here, \(advice)")
      }
      return
    }
    let request = HTTPFetch.Request(
      method: "GET", host: "\(place.address)", path: isFigures ? "/metrics" : "/livez", timeout: Self.timeout,
      longestAnswer: 16 << 20)
    let target = DialTarget(place.address, tls: nil, timeout: Self.timeout)
    let body = if case .answered(200, let body?) = ask(request, target) { String(decoding: body, as: UTF8.self) } else { "" }
    let isGateway = isFigures ? body.contains("\npushfleet_gateway_") : body == "alive\n"
    hasGateway = hasGateway || isGateway
    switch (isGateway, body.contains("\npushfleet_shards ")) {
    case (true, _) where place.setting != "metrics" || configuration.gateway?.metrics == nil:
      report(.ok, place, "a gateway is there", nil)
    case (_, true) where place.setting == "metrics":
      report(.ok, place, "a worker is there", nil)
      if configuration.gateway != nil, configuration.gateway?.metrics == nil {
        report(
          .warning, place, "a gateway on this machine can't use it too", "give it its own address: gateway.metrics"
        )
      }
    default:
      report(.error, place, "in use by something that is no \(place.setting == "metrics" ? "worker" : "gateway")", advice)
    }
  }

  private func report(
    _ level: Finding.Level, _ place: (setting: String, address: Endpoint), _ sentence: String, _ remedy: String?
  ) {
    report(level, "\(place.setting) \(place.address)", sentence, remedy)
  }

  // MARK: keys

  static func keys(_ store: DeviceStore, _ configuration: Configuration) throws(RegistryError) -> [Finding] {
    guard configuration.gateway?.http != nil else { return [] }
    let count = try store.keys().count { $0.revokedAt == nil }
    guard count > 0 else {
      let remedy = "create one for each sender: `pushfleet keys create --app APP --rights send`"
      return [Finding(.warning, "gateway.http", "there is no key: every sender is refused", remedy)]
    }
    return [Finding(.ok, "gateway.http", count == 1 ? "1 key opens it" : "\(count) keys open it")]
  }
}
