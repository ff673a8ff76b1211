import Providers
import PushCore
import Reactor
import Wire

/// A shard's pools: one for each credential of each application.
final class PoolSet {
  private(set) var apps: [Pipeline.App] = []
  private(set) var lanes: [PoolLanes] = []
  private var names: [ObjectIdentifier: String] = [:]

  /// - Throws: naming the setting whose key, certificate or CA file cannot be used.
  init(_ configuration: Configuration, loop: EventLoop) throws(ConfigurationError) {
    let surroundings = LoopSurroundings(loop)
    for app in configuration.apps {
      var entry = Pipeline.App(id: Array(app.id.utf8))
      if let apns = app.apns {
        let pool = APNsPool(credentials: try apns.credentials(of: app.id), surroundings: surroundings)
        entry.apns = add(.apns(pool), name: "\(app.id) APNs \(apns.environment.rawValue)")
        entry.apnsSettings = APNsSettings(topic: apns.topic)
      }
      if let fcm = app.fcm {
        let pool = FCMPool(credentials: try fcm.credentials(of: app.id), surroundings: surroundings)
        entry.fcm = add(.fcm(pool), name: "\(app.id) FCM")
      }
      apps.append(entry)
    }
  }

  func connect(handler: any PoolHandler, observer: any PoolObserver) {
    for lane in lanes {
      switch lane.provider {
      case .apns(let pool):
        pool.handler = handler
        pool.observer = observer
      case .fcm(let pool):
        pool.handler = handler
        pool.observer = observer
      }
    }
  }

  /// For logs.
  func name(of pool: any Pool) -> String { names[ObjectIdentifier(pool)] ?? "unknown" }

  private func add(_ provider: PoolLanes.Provider, name: String) -> Int {
    lanes.append(PoolLanes(provider))
    names[ObjectIdentifier(provider.pool)] = name
    return lanes.count - 1
  }
}

/// The loop as the pools see it.
final class LoopSurroundings: PoolSurroundings {
  private let loop: EventLoop

  init(_ loop: EventLoop) { self.loop = loop }

  var now: MonotonicTime { loop.now }
  var wallClock: Int64 { loop.wallClock }

  func schedule(at time: MonotonicTime, _ body: @escaping () -> Void) { _ = loop.schedule(at: time, body) }

  func dial(_ machine: any Machine, to target: DialTarget) -> any Transport {
    let link = Link(
      loop: loop, machine: machine, to: Endpoint(host: target.host, port: target.port), tls: target.tls,
      serverName: target.serverName, options: LinkOptions(connectTimeout: target.timeout))
    link.start()
    return link
  }
}
