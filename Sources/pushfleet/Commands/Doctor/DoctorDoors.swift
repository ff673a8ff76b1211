import DeviceRegistry
import Providers
import PushCore
import Reactor
import Worker

/// Looks at the places that a gateway listens on: whether it could, or is there already.
final class DoctorDoors {
  /// Seconds.
  private static let timeout = 5.0

  private let configuration: Configuration
  private let loop: EventLoop
  private let dialer: LoopDialer
  private var call: HTTPCall?
  private var transport: AnyObject?
  private var findings: [Finding] = []

  init(_ configuration: Configuration) throws {
    self.configuration = configuration
    loop = try EventLoop()
    dialer = LoopDialer(loop: loop)
  }

  func look() -> [Finding] {
    lookAtCertificates()
    loop.schedule(after: 0) { [unowned self] in look(at: configuration.doorAddresses[...]) }
    loop.run()
    return findings
  }

  /// Those that can't be used, or have ended, the configuration's check has found.
  private func lookAtCertificates() {
    let loaded = [try? configuration.gateway?.http?.loadCertificate(), try? configuration.gateway?.apns?.loadCertificate()]
    for certificate in loaded.compactMap(\.self) {
      let end = certificate.expiry.notAfter
      let date = String(decoding: Timestamp.text(end * 1_000).prefix(10), as: UTF8.self)
      let isNear = end - RegistrySession.now / 1_000 < Self.near
      findings.append(
        Finding(
          level: isNear ? .warning : .ok, subject: certificate.setting, sentence: "ends on \(date)",
          remedy: isNear ? "renew it; a gateway that runs takes the new file over" : nil))
    }
  }

  /// Seconds.
  private static let near: Int64 = 31 * 86_400

  private func look(at places: ArraySlice<(setting: String, address: Endpoint)>) {
    guard let place = places.first else { return loop.stop() }
    let next = { [unowned self] in look(at: places.dropFirst()) }
    do {
      try Listener(loop: loop, host: place.address.host, port: place.address.port) { _ in nil }.close()
      report(.ok, place, "free", nil)
      next()
    } catch let error as SystemError where error.isInUse {
      lookWhoIsThere(place, next)
    } catch {
      report(error, place)
      next()
    }
  }

  private func report(_ error: any Error, _ place: (setting: String, address: Endpoint)) {
    if let error = error as? SystemError, error.isOfNoAddress {
      return report(
        .warning, place, "this machine has no such address",
        "where the gateway runs here, name an address of this machine, or 0.0.0.0 for all of them")
    }
    report(.error, place, "can't be listened on: \(error)", "choose another address or port, or give its user the right to it")
  }

  // MARK: in use

  /// Only the HTTP door without TLS says what it is; of the others nobody knows without a sender's certificate.
  private func lookWhoIsThere(_ place: (setting: String, address: Endpoint), _ next: @escaping () -> Void) {
    let advice = "`ss -ltnp 'sport = :\(place.address.port)'` names who has it: end that, or choose another port"
    guard place.setting == "gateway.http.listen", configuration.gateway?.http?.identity == nil else {
      let own =
        place.setting == "metrics" ? "; where that is a worker, give the gateway a place of its own: gateway.metrics" : ""
      report(
        .warning, place, "in use, by a gateway that runs or by somebody else\(own)", "where no gateway runs here: " + advice)
      return next()
    }
    let request = HTTPCall.Request(
      method: "GET", host: "\(place.address)", path: "/livez", timeout: Self.timeout, longestAnswer: 4_096)
    let call = HTTPCall(request) { [weak self] answer in
      guard let self else { return }
      if case .answered(200, let body?) = answer, body.elementsEqual("alive\n".utf8) {
        report(.ok, place, "a gateway is there", nil)
      } else {
        report(.error, place, "in use by something that is no gateway", advice)
      }
      loop.schedule(after: 0, next)
    }
    self.call = call
    transport = dialer.dial(
      call, to: DialTarget(host: place.address.host, port: place.address.port, tls: nil, timeout: Self.timeout))
  }

  private func report(
    _ level: Finding.Level, _ place: (setting: String, address: Endpoint), _ sentence: String, _ remedy: String?
  ) {
    findings.append(
      Finding(level: level, subject: "\(place.setting) \(place.address)", sentence: sentence, remedy: remedy))
  }

  // MARK: keys

  /// Whether anybody may come in by the HTTP door.
  static func keys(_ store: any DeviceStore, _ configuration: Configuration) throws(RegistryError) -> [Finding] {
    guard configuration.gateway?.http != nil else { return [] }
    let count = try store.keys().count { $0.revokedAt == nil }
    guard count > 0 else {
      return [
        Finding(
          level: .warning, subject: "gateway.http", sentence: "there is no key: every sender is refused",
          remedy: "make one for each sender: `pushfleet keys create --app APP --rights send`")
      ]
    }
    let words = count == 1 ? "1 key opens it" : "\(count) keys open it"
    return [Finding(level: .ok, subject: "gateway.http", sentence: words, remedy: nil)]
  }
}
