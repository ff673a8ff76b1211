import AMQP
import Logging
import PushCore
import Reactor
import Settings
import TLS
import Wire

/// The door for senders of APNs' binary interface, with its feedback service where that is configured.
final class BinaryDoor: Door {
  private let loop: EventLoop
  private let log: Log
  private let drainTime: Double
  private let publishing: BinaryPublishing
  private var apps: Set<[UInt8]>
  /// Whom every sender of this door sends to; nil where their certificates say.
  private let only: [UInt8]?
  let limits: RequestLimits
  private var listeners: [Listener] = []
  private(set) var expiry: CertificateExpiry?
  /// Of both services, before the end of their handshake: they take no room from those who have shown who they are.
  private var arrivals: BoundedConnections<any Machine>
  private var senders: BoundedConnections<BinaryConnection>
  private var readers: BoundedConnections<FeedbackConnection>
  private var feedback: FeedbackDesk?
  private let figures: BinaryFigures
  private var throttle = LogThrottle()
  /// When the last words of a drain have had their time to be read.
  private var parting = MonotonicTime(nanoseconds: 0)

  /// Listens at once.
  /// - Throws: `ConfigurationError` when a setting can't be used, `PlaceTaken` when it perhaps can later.
  init(_ settings: GatewayAPNsSettings, _ room: ConnectionRoom, _ context: GatewayContext) throws {
    let configuration = context.configuration
    arrivals = BoundedConnections(most: room.arrivals) { $0.transport?.close() }
    senders = BoundedConnections(most: room.binary) { $0.makeRoom() }
    readers = BoundedConnections(most: room.readers) { $0.transport?.close() }
    loop = context.loop
    log = context.log
    drainTime = Double(configuration.drainTimeout)
    figures = context.figures.binary
    publishing = BinaryPublishing(time: loop.time, broker: context.broker)
    limits = configuration.limits
    apps = try configuration.binarySenders()
    only = settings.app.map { Array($0.utf8) }
    let certificate = try settings.loadCertificate()
    expiry = certificate.expiry
    let tls = try settings.tls(certificate)
    listeners.append(try listener(settings.listen, "gateway.apns.listen", tls) { [unowned self] in accept() })
    log.info("the door for APNs' binary interface is open", ["address": "\(settings.listen)"])
    guard let place = settings.feedback else { return }
    let desk = FeedbackDesk(
      context.topology, loop: loop, broker: context.broker, brokers: try configuration.brokerAddresses(), figures: figures,
      listsBadTokens: settings.listsBadTokens)
    feedback = desk
    listeners.append(try listener(place, "gateway.apns.feedback", tls) { [unowned self] in acceptReader(desk) })
    log.info("the feedback service is open", ["address": "\(place)"])
  }

  private func listener(
    _ place: Endpoint, _ key: String, _ tls: TLSServerContext, _ accept: @escaping () -> (any Machine)?
  ) throws -> Listener {
    do {
      return try Listener(
        loop: loop, host: place.host, port: place.port, tls: tls, options: LinkOptions(connectTimeout: Self.handshakeTime)
      ) { _ in accept() }
    } catch let error as SystemError where error.isInUse {
      throw PlaceTaken(setting: key, reason: "\(place) is in use: end what listens there, or choose another port")
    } catch let error as SystemError where error.isOfNoAddress {
      throw PlaceTaken(setting: key, reason: "\(place) is no address of this machine")
    } catch {
      throw ConfigurationError(key: key, problem: "cannot be listened on: \(error)")
    }
  }

  /// Seconds.
  private static let handshakeTime = 15.0

  private func accept() -> (any Machine)? {
    let connection = BinaryConnection(self) { [unowned self] in identify($0) }
    return arrivals.admit(connection) ? connection : nil
  }

  private func acceptReader(_ desk: FeedbackDesk) -> (any Machine)? {
    let connection = FeedbackConnection(
      open: { [unowned desk] in desk.open($0, $1) }, identify: { [unowned self] in identify($0) },
      opened: { [unowned self] reader in
        arrivals.remove(reader)
        return readers.admit(reader)
      },
      ended: { [weak self] reader in
        self?.arrivals.remove(reader)
        self?.readers.remove(reader)
      })
    return arrivals.admit(connection) ? connection : nil
  }

  private func identify(_ transport: any Transport) -> [UInt8]? {
    if let only { return only }
    let name = (transport as? any AcceptedTransport)?.peerUserID
    if let name, apps.contains(Array(name.utf8)) { return Array(name.utf8) }
    if let omitted = throttle.admit(Array((name ?? "").utf8.prefix(200)), at: loop.now) {
      log.warning(
        "a sender's certificate belongs to no application with settings for APNs", ["uid": name ?? "", "omitted": omitted])
    }
    return nil
  }

  /// Takes over who may send, and certificate, key and authorities for connections from now on.
  func reload(_ configuration: Configuration) throws(ConfigurationError) {
    guard let settings = configuration.gateway?.apns else { return }
    let certificate = try settings.loadCertificate()
    let (tls, senders) = (try settings.tls(certificate), try configuration.binarySenders())
    expiry = certificate.expiry
    apps = senders
    for listener in listeners { listener.tls = tls }
  }

  // MARK: the end

  /// Each connection has its own time limits.
  func lookAround() {}

  /// Takes nothing more; each sender is told after the confirms which of its notifications was the last to be taken.
  func drain() {
    for listener in listeners { listener.close() }
    // Last words need their time as well.
    publishing.hurry(max(drainTime - 2 * Self.partingTime, drainTime / 2))
    for connection in arrivals.all { connection.transport?.close() }
    for connection in senders.all { connection.drain() }
    feedback?.drain()
  }

  var isIdle: Bool { arrivals.count + senders.count == 0 && feedback?.isIdle ?? true && loop.now >= parting }

  func close() {
    for listener in listeners {
      listener.close()
      listener.closeConnections()
    }
  }
}

extension BinaryDoor: BinaryDesk {
  var wallClock: Int64 { loop.wallClock }
  func hasRoom(for connection: BinaryConnection) -> Bool { publishing.hasRoom(for: connection) }

  func publish(_ request: BinaryRequest, _ settled: @escaping (Bool) -> Void) {
    publishing.publish(request) { [figures] isTaken in
      if isTaken { figures.taken += 1 } else { figures.lost += 1 }
      settled(isTaken)
    }
  }

  func noteFarewell(_ response: ErrorResponse?, of app: [UInt8]?) {
    guard let response else { return }
    // A reset, which the end of the process is to a peer that still writes, could overtake it.
    parting = loop.now.advanced(bySeconds: Self.partingTime)
    figures.responses[response.status, default: 0] += 1
    guard let omitted = throttle.admit((app ?? []) + [0, response.status.rawValue], at: loop.now) else { return }
    log.info(
      "a sender of the binary interface got an error response",
      [
        "app": app ?? [], "status": Int(response.status.rawValue), "meaning": response.status.word,
        "identifier": Int(response.identifier), "omitted": omitted,
      ])
  }

  func noteUnheard(_ response: ErrorResponse?, lost: Int, of app: [UInt8]?) {
    guard let omitted = throttle.admit((app ?? []) + [1], at: loop.now) else { return }
    log.warning(
      "a sender of the binary interface has gone before its error response",
      [
        "app": app ?? [], "meaning": response?.status.word ?? "", "identifier": response.map { Int($0.identifier) } ?? 0,
        "given_up": lost, "omitted": omitted,
      ])
  }

  /// Seconds for which a drain waits for the last words to be read.
  private static let partingTime = 0.5

  func opened(_ connection: BinaryConnection) -> Bool {
    arrivals.remove(connection)
    defer { figures.open = senders.count }
    return senders.admit(connection)
  }

  func heard(_ connection: BinaryConnection, isIdle: Bool) { senders.heard(connection, isIdle: isIdle) }

  func finished(_ connection: BinaryConnection) {
    arrivals.remove(connection)
    senders.remove(connection)
    figures.open = senders.count
  }
}

extension Configuration {
  /// The applications that senders of the binary interface may be for.
  fileprivate func binarySenders() throws(ConfigurationError) -> Set<[UInt8]> {
    try requireBinaryApp()
    return Set(binaryApps.map { Array($0.utf8) })
  }
}
