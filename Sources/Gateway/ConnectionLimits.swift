import StatusHTTP

/// How many connections each door may have, so that the process never runs out of descriptors.
struct ConnectionLimits {
  struct Doors: OptionSet {
    let rawValue: Int
    static let http = Doors(rawValue: 1)
    static let binary = Doors(rawValue: 2)
    static let feedback = Doors(rawValue: 4)
  }

  /// Descriptors for the broker, the registry, the metrics, the lists of the feedback service and files.
  private static let reserve = 384

  let http: Int
  /// Connections of the binary interface after their handshake.
  let binary: Int
  /// Connections of the feedback service after their handshake.
  let readers: Int
  /// Connections of both during their handshake.
  let arrivals: Int

  /// - Parameters:
  ///   - descriptors: how many the process may have open.
  ///   - doors: the open doors. The binary interface gets the larger part, because its senders stay connected for hours.
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
