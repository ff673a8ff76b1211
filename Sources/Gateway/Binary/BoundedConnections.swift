import Wire

/// Connections of one kind, no more than a number: for the next one, the one that has been silent for longest goes.
struct BoundedConnections<Connection> {
  /// Connections beyond the number, as one that is asked to leave is gone a moment later.
  static var passing: Int { 64 }

  private let most: Int
  private let makeRoom: (Connection) -> Void
  private var order = IdleOrder<Connection>()
  /// With their places in the order.
  private var entries: [ObjectIdentifier: (connection: Connection, place: Int)] = [:]

  /// - Parameter makeRoom: asks a connection to leave.
  init(most: Int, makeRoom: @escaping (Connection) -> Void) {
    self.most = most
    self.makeRoom = makeRoom
  }

  var count: Int { entries.count }
  var all: [Connection] { entries.values.map(\.connection) }

  /// - Returns: there is room for it.
  mutating func admit(_ connection: Connection) -> Bool {
    if count >= most, let oldest = order.takeOldest() { makeRoom(oldest) }
    // Those that were asked to go have gone by the next turn; where all are busy, nobody is asked.
    guard count < most + Self.passing else { return false }
    entries[ObjectIdentifier(connection as AnyObject)] = (connection, order.open(connection))
    return true
  }

  mutating func heard(_ connection: Connection, isIdle: Bool) {
    guard let place = entries[ObjectIdentifier(connection as AnyObject)]?.place else { return }
    if isIdle { order.idle(place) } else { order.busy(place) }
  }

  mutating func remove(_ connection: Connection) {
    if let entry = entries.removeValue(forKey: ObjectIdentifier(connection as AnyObject)) { order.close(entry.place) }
  }
}
