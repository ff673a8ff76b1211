import Wire

/// What connects the parties: addresses, and every connection that is open.
final class Network {
  enum Refusal {
    /// Nobody listens: an error comes back at once.
    case refused
    /// Nothing comes back at all.
    case silent
  }

  /// Makes the machine of a new connection from a party, or doesn't.
  typealias Accept = (Party) -> Result<any Machine, RefusedDial>
  struct RefusedDial: Error { var how: Refusal }

  private struct Listener {
    unowned let party: Party
    let accept: Accept
  }

  private unowned let world: World
  private var listeners: [String: Listener] = [:]
  private(set) var paths: [NetworkPath] = []
  /// How often bytes are handed over in slices: one time in so many; 0 for never.
  var sliceOneIn = 0

  init(_ world: World) { self.world = world }

  func listen(at address: String, _ party: Party, _ accept: @escaping Accept) {
    listeners[address] = Listener(party: party, accept: accept)
  }

  /// Starts connecting; the machine hears of success or failure in a later turn.
  func dial(_ machine: any Machine, from party: Party, to address: String, timeout: Double) -> any Transport {
    let path = NetworkPath(
      self, name: "\(party.name) to \(address)", address: address,
      latency: Double(Int.random(in: 1...15, using: &world.random)) / 1000)
    let client = NetworkEnd(machine, of: party, on: path)
    path.attach(client: client)
    paths.removeAll { $0.isOver }
    paths.append(path)
    party.attach(client)
    connect(path, to: address, by: world.now.advanced(bySeconds: timeout))
    return client.driver
  }

  /// Seconds between two packets that ask for a connection.
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
    switch listener.accept(client.party) {
    case .success(let machine):
      let server = NetworkEnd(machine, of: listener.party, on: path)
      path.attach(server: server)
      listener.party.attach(server)
      server.send(.opened, arriving: world.now)
      client.send(.opened, arriving: path.arrival(at: world.now))
    case .failure(let refusal) where refusal.how == .refused:
      client.send(.ended(.connectFailed("refused")), arriving: path.arrival(at: world.now))
    case .failure: unanswered(path, at: address, deadline)
    }
  }

  /// It is asked again until the time is over.
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

  /// Two runs of a seed carry the same.
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
