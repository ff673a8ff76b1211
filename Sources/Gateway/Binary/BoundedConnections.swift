import Wire

/// Connections of one kind with a maximum number. To admit another one, the connection that has been idle longest is asked to
/// leave.
struct BoundedConnections<Connection> {
  /// Connections allowed beyond the maximum, because a connection that is asked to leave closes a moment later.
  static var passing: Int { 64 }

  private let most: Int
  private let makeRoom: (Connection) -> Void
  private var order = IdleOrder<Connection>()
  /// Connections with their places in the order.
  private var entries: [ObjectIdentifier: (connection: Connection, place: Int)] = [:]

  /// - Parameter makeRoom: asks a connection to leave.
  init(most: Int, makeRoom: @escaping (Connection) -> Void) {
    self.most = most
    self.makeRoom = makeRoom
  }

  var count: Int { entries.count }
  var all: [Connection] { entries.values.map(\.connection) }

  /// - Returns: true if there is room for the connection.
  mutating func admit(_ connection: Connection) -> Bool {
    if count >= most, let oldest = order.takeOldest() { makeRoom(oldest) }
    // Connections that were asked to leave are gone by the next turn. While all are busy, none is asked.
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
