import Wire

/// The network: addresses and all open connections.
final class Network {
  enum Refusal {
    /// Nobody listens: an error is returned at once.
    case refused
    /// There is no answer.
    case silent
  }

  /// Makes the machine for a participant's new connection, or refuses it.
  typealias Accept = (Participant) -> Result<any Machine, RefusedDial>
  struct RefusedDial: Error { var how: Refusal }

  private struct Listener {
    unowned let participant: Participant
    let applicationProtocol: String?
    let accept: Accept
  }

  private unowned let world: World
  private var listeners: [String: Listener] = [:]
  private(set) var paths: [NetworkPath] = []
  /// Received bytes are sliced one time in this many; 0 for never.
  var sliceOneIn = 0

  init(_ world: World) { self.world = world }

  /// - Parameter applicationProtocol: what a TLS handshake would select; nil if the client doesn't ask.
  func listen(
    at address: String, _ participant: Participant, applicationProtocol: String? = nil, _ accept: @escaping Accept
  ) {
    listeners[address] = Listener(participant: participant, applicationProtocol: applicationProtocol, accept: accept)
  }

  /// Starts to connect. The machine learns the outcome in a later turn.
  func dial(_ machine: any Machine, from participant: Participant, to address: String, timeout: Double) -> any Transport {
    let path = NetworkPath(
      self, name: "\(participant.name) to \(address)", address: address,
      latency: Double(Int.random(in: 1...15, using: &world.random)) / 1000)
    let client = NetworkEnd(machine, of: participant, on: path)
    path.attach(client: client)
    paths.removeAll { $0.isOver }
    paths.append(path)
    participant.attach(client)
    connect(path, to: address, by: world.now.advanced(bySeconds: timeout))
    return client.driver
  }

  /// Seconds between connection attempts' packets.
  static let synInterval = 1.0

  private func connect(_ path: NetworkPath, to address: String, by deadline: MonotonicTime) {
    world.schedule(at: path.arrival(at: world.now)) { [weak self, weak path] in
      if let self, let path { arrived(path, at: address, deadline) }
    }
  }

  private func arrived(_ path: NetworkPath, at address: String, _ deadline: MonotonicTime) {
    guard let client = path.client, !client.isOver else { return }
    if path.isDead { return unanswered(path, at: address, deadline) }
    guard let listener = listeners[address] else {
      return client.send(.ended(.connectFailed("refused")), arriving: path.arrival(at: world.now))
    }
    switch listener.accept(client.participant) {
    case .success(let machine):
      let server = NetworkEnd(machine, of: listener.participant, on: path)
      path.attach(server: server)
      listener.participant.attach(server)
      client.driver.applicationProtocol = listener.applicationProtocol
      server.send(.opened, arriving: world.now)
      client.send(.opened, arriving: path.arrival(at: world.now))
    case .failure(let refusal) where refusal.how == .refused:
      client.send(.ended(.connectFailed("refused")), arriving: path.arrival(at: world.now))
    case .failure: unanswered(path, at: address, deadline)
    }
  }

  /// Repeats the attempt until the time is over.
  private func unanswered(_ path: NetworkPath, at address: String, _ deadline: MonotonicTime) {
    let next = world.now.advanced(bySeconds: Self.synInterval)
    guard next < deadline else {
      path.client?.send(.ended(.connectFailed("timed out")), arriving: max(world.now, deadline))
      return
    }
    world.schedule(at: next) { [weak self, weak path] in
      if let self, let path { connect(path, to: address, by: deadline) }
    }
  }

  /// Two runs of a seed must transfer the same bytes.
  func noteCarried(_ bytes: Int, toServer: Bool) { world.mix(toServer ? bytes : -bytes) }

  func slice(_ bytes: [UInt8]) -> [[UInt8]] {
    guard sliceOneIn > 0, bytes.count > 1, world.random.next() % UInt64(sliceOneIn) == 0 else { return [bytes] }
    var pieces: [[UInt8]] = []
    var start = 0
    while start < bytes.count {
      let end = min(bytes.count, start + Int.random(in: 1...max(1, bytes.count / 3), using: &world.random))
      pieces.append(Array(bytes[start..<end]))
      start = end
    }
    return pieces
  }
}
