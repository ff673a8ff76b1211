import AMQP
import Logging
import PushCore
import Reactor
import Settings
import TLS
import Wire

/// The door for senders of APNs' binary interface, with its feedback service if that is configured.
final class BinaryDoor: Door {
  private let context: GatewayContext
  private let publishing: BinaryPublishing
  private var apps: Set<[UInt8]>
  /// The application of all senders of this door; nil if their certificates name the application.
  private let only: [UInt8]?
  private var listeners: [Listener] = []
  private(set) var expiry: CertificateExpiry?
  /// Connections of both services during their handshake. They have their own limit, so that they take no room from
  /// authenticated ones.
  private var arrivals: BoundedConnections<any Machine>
  private var senders: BoundedConnections<BinaryConnection>
  private var readers: BoundedConnections<FeedbackConnection>
  private var feedback: FeedbackService?
  private var throttle = Throttle<[UInt8]>(seconds: 60, most: 1_000)
  /// The end of the time that peers have to read the last error responses of a drain.
  private var parting = MonotonicTime(nanoseconds: 0)

  /// Starts to listen.
  /// - Throws: `ConfigurationError` if a setting can't be used, `AddressUnavailable` if it may be usable later.
  init(_ settings: GatewayAPNsSettings, _ connectionLimits: ConnectionLimits, _ context: GatewayContext) throws {
    arrivals = BoundedConnections(most: connectionLimits.arrivals) { $0.transport?.close() }
    senders = BoundedConnections(most: connectionLimits.binary) { $0.makeRoom() }
    readers = BoundedConnections(most: connectionLimits.readers) { $0.transport?.close() }
    self.context = context
    publishing = BinaryPublishing(time: context.loop.time) { [broker = context.broker] request, answered in
      // The user is known only here, because it depends on the broker that is connected.
      var properties = request.properties
      properties.userID = broker.user
      broker.publish(
        exchange: Array(broker.topology.sendExchange.utf8), routingKey: Array(request.priority.rawValue.utf8),
        properties: properties, body: request.body, isPatient: true
      ) { answered($0 == .confirmed) }
    }
    apps = try context.configuration.binarySenders()
    only = settings.app.map { Array($0.utf8) }
    let certificate = try settings.loadCertificate()
    expiry = certificate.expiry
    let tls = try settings.tls(certificate)
    listeners.append(try listener(settings.listen, "gateway.apns.listen", tls) { [unowned self] in accept() })
    context.log.info("the door for APNs' binary interface is open", ["address": "\(settings.listen)"])
    guard let place = settings.feedback else { return }
    let service = FeedbackService(context, listsBadTokens: settings.listsBadTokens)
    feedback = service
    listeners.append(try listener(place, "gateway.apns.feedback", tls) { [unowned self] in acceptReader(service) })
    context.log.info("the feedback service is open", ["address": "\(place)"])
  }

  private func listener(
    _ place: Endpoint, _ key: String, _ tls: TLSServerContext, _ accept: @escaping () -> (any Machine)?
  ) throws -> Listener {
    do {
      return try Listener(
        loop: context.loop, host: place.host, port: place.port, tls: tls,
        options: LinkOptions(connectTimeout: Self.handshakeTime)
      ) { _ in accept() }
    } catch let error as SystemError where error.isInUse {
      throw AddressUnavailable(setting: key, reason: "\(place) is in use: end what listens there, or choose another port")
    } catch let error as SystemError where error.isOfNoAddress {
      throw AddressUnavailable(setting: key, reason: "\(place) is not an address of this machine")
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

  private func acceptReader(_ service: FeedbackService) -> (any Machine)? {
    let connection = FeedbackConnection(
      open: { [unowned service] in service.open($0, $1) }, identify: { [unowned self] in identify($0) },
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
    if let omitted = throttle.admit(Array((name ?? "").utf8.prefix(200)), at: context.loop.now) {
      context.log.warning(
        "a sender's certificate belongs to no application with settings for APNs", ["uid": name ?? "", "omitted": omitted])
    }
    return nil
  }

  /// Replaces the set of applications, and for new connections certificate, key and authorities.
  func reload(_ configuration: Configuration) throws(ConfigurationError) {
    guard let settings = configuration.gateway?.apns else { return }
    let certificate = try settings.loadCertificate()
    let (tls, senders) = (try settings.tls(certificate), try configuration.binarySenders())
    expiry = certificate.expiry
    apps = senders
    for listener in listeners { listener.tls = tls }
  }

  // MARK: the end

  /// Nothing to do: each connection has its own time limits.
  func lookAround() {}

  /// Accepts nothing more. After the confirms, each sender learns which of its notifications was accepted last.
  func drain() {
    for listener in listeners { listener.close() }
    // Leave time for the error responses.
    let drainTime = Double(context.configuration.drainTimeout)
    publishing.hurry(max(drainTime - 2 * Self.partingTime, drainTime / 2))
    for connection in arrivals.all { connection.transport?.close() }
    for connection in senders.all { connection.drain() }
    feedback?.drain()
  }

  var isIdle: Bool { arrivals.count + senders.count == 0 && feedback?.isIdle ?? true && context.loop.now >= parting }

  func close() {
    for listener in listeners {
      listener.close()
      listener.closeConnections()
    }
  }
}

extension BinaryDoor: BinaryPublisher {
  var wallClock: Int64 { context.loop.wallClock }
  var limits: RequestLimits { context.configuration.limits }
  func hasRoom(for connection: BinaryConnection) -> Bool { publishing.hasRoom(for: connection) }

  func publish(_ request: BinaryRequest, _ settled: @escaping (Bool) -> Void) {
    publishing.publish(request) { [figures = context.figures.binary] isTaken in
      if isTaken { figures.taken += 1 } else { figures.lost += 1 }
      settled(isTaken)
    }
  }

  func noteFarewell(_ response: ErrorResponse?, of app: [UInt8]?) {
    guard let response else { return }
    // If a peer still writes, the end of the process resets its connection, and the reset could overtake the response.
    parting = context.loop.now.advanced(bySeconds: Self.partingTime)
    context.figures.binary.responses[response.status, default: 0] += 1
    guard let omitted = throttle.admit((app ?? []) + [0, response.status.rawValue], at: context.loop.now) else { return }
    context.log.info(
      "a sender of the binary interface got an error response",
      [
        "app": app ?? [], "status": Int(response.status.rawValue), "meaning": response.status.word,
        "identifier": Int(response.identifier), "omitted": omitted,
      ])
  }

  func noteUnheard(_ response: ErrorResponse?, lost: Int, of app: [UInt8]?) {
    guard let omitted = throttle.admit((app ?? []) + [1], at: context.loop.now) else { return }
    context.log.warning(
      "a sender of the binary interface disconnected before its error response",
      [
        "app": app ?? [], "meaning": response?.status.word ?? "", "identifier": response.map { Int($0.identifier) } ?? 0,
        "given_up": lost, "omitted": omitted,
      ])
  }

  /// Seconds that a drain leaves for peers to read the last error responses.
  private static let partingTime = 0.5

  func opened(_ connection: BinaryConnection) -> Bool {
    arrivals.remove(connection)
    defer { context.figures.binary.open = senders.count }
    return senders.admit(connection)
  }

  func heard(_ connection: BinaryConnection, isIdle: Bool) { senders.heard(connection, isIdle: isIdle) }

  func finished(_ connection: BinaryConnection) {
    arrivals.remove(connection)
    senders.remove(connection)
    context.figures.binary.open = senders.count
  }
}

extension Configuration {
  fileprivate func binarySenders() throws(ConfigurationError) -> Set<[UInt8]> {
    try requireBinaryApp()
    return Set(binaryApps.map { Array($0.utf8) })
  }
}
