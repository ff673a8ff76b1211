import StatusHTTP

/// How many connections each door may have, so that the process is never out of descriptors.
struct ConnectionRoom {
  struct Doors: OptionSet {
    let rawValue: Int
    static let http = Doors(rawValue: 1)
    static let binary = Doors(rawValue: 2)
    static let feedback = Doors(rawValue: 4)
  }

  /// For the broker, the registry, the figures, the lists of the feedback service and files.
  private static let reserve = 384

  let http: Int
  /// Of the binary interface, after their handshake.
  let binary: Int
  /// Of the feedback service, after their handshake.
  let readers: Int
  /// Of both, before the end of their handshake.
  let arrivals: Int

  /// - Parameters:
  ///   - descriptors: that the process may have open.
  ///   - doors: which are open. Old senders keep their connections open for hours, and get the larger part.
  init(descriptors: Int, doors: Doors) {
    let passing =
      (doors.contains(.http) ? Int(HTTPServerLimits.passing) : 0)
      + (doors.contains(.binary) ? 3 * BoundedConnections<BinaryConnection>.passing : 0)
    let room = max(descriptors - Self.reserve - passing, 64)
    let isShared = doors.contains([.http, .binary])
    let old = isShared ? room / 4 * 3 : room
    http = min(4_096, isShared ? room / 4 : room)
    readers = doors.contains(.feedback) ? min(1_000, old / 8) : 0
    arrivals = min(2_000, old / 8)
    binary = min(20_000, old - readers - arrivals)
  }
}
