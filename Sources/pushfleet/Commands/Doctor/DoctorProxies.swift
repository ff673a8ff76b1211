import Providers
import Reactor
import Settings
import Wire

/// Asks each proxy for a tunnel to one of the hosts that are reached through it.
final class DoctorProxies: DoctorLook {
  private let targets: [DialTarget]

  /// - Parameter app: the application whose proxies are checked; nil for all.
  init(_ configuration: Configuration, app: String?) throws {
    var seen: Set<ProxyAddress> = []
    targets = configuration.proxyTargets(of: app).filter { $0.options.proxy.map { seen.insert($0).inserted } ?? false }
    try super.init()
  }

  func look() -> [Finding] {
    for target in targets {
      guard let proxy = target.options.proxy else { continue }
      let attempt = TunnelAttempt()
      let transport = loop.dial(attempt, to: target)
      let end = withExtendedLifetime(transport) { wait { attempt.end } }
      judge(attempt.isFinished ? nil : end, proxy, target.endpoint)
    }
    return findings
  }

  private func judge(_ problem: TransportEnd?, _ proxy: ProxyAddress, _ host: Endpoint) {
    switch problem {
    case nil: report(.ok, "proxy \(proxy)", "opens a tunnel to \(host)", nil)
    case .connectFailed(let reason)?:
      report(.unreachable, "proxy \(proxy)", reason, "correct `proxy`, or the rules of the proxy")
    case let end?: report(.unreachable, "proxy \(proxy)", "opens no tunnel to \(host): \(end)", "look at the proxy's log")
    }
  }
}

/// A connection that is closed when it is open.
private final class TunnelAttempt: Machine {
  weak var transport: (any Transport)?
  /// True if the connection was opened.
  private(set) var isFinished = false
  private(set) var end: TransportEnd?
  let deadline = MonotonicTime.distantFuture

  func transportOpened(at now: MonotonicTime) { isFinished = true }
  func receive(_ bytes: RawSpan, at now: MonotonicTime) {}
  func writeOutput(to buffer: inout OutputBuffer, at now: MonotonicTime) {}
  func deadlineReached(at now: MonotonicTime) {}
  func transportClosed(_ reason: TransportEnd, at now: MonotonicTime) { end = reason }
}

extension Configuration {
  /// The hosts of providers and of the collector, without TLS. A push service whose name isn't listed is unknown.
  fileprivate func proxyTargets(of app: String?) -> [DialTarget] {
    var targets: [DialTarget] = []
    func add(_ endpoint: Endpoint, _ proxy: ProxyChoice) {
      targets.append(DialTarget(endpoint, tls: nil, through: proxy))
    }
    for set in apps.filter({ app == nil || $0.id == app }).flatMap(\.sets).map(\.set) {
      for apns in set.apns { add(apns.endpoint, apns.proxy) }
      if let fcm = set.fcm { add(fcm.endpoint ?? FCMCredentials.google, fcm.proxy) }
      if let webpush = set.webpush, let host = webpush.hosts.first(where: { !$0.contains("*") }) {
        add(Endpoint(host: host, port: 443), webpush.proxy)
      }
    }
    if let traces { add(traces.address.endpoint, traces.proxy) }
    return targets
  }
}
