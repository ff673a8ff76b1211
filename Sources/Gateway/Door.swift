import Settings
import StatusHTTP

/// An entrance of the gateway, such as the HTTP server. Confined to the loop's thread.
protocol Door: AnyObject {
  /// Applies the applications and certificates of a configuration. After an error the previous ones stay in use.
  func reload(_ configuration: Configuration) throws(ConfigurationError)
  /// The expiry of the door's certificate; nil if it has none.
  var expiry: CertificateExpiry? { get }
  /// Ends connections that are too slow. Called about once a second.
  func lookAround()
  func drain()
  /// True if no request waits for an answer.
  var isIdle: Bool { get }
  func close()
}

/// How many connections each door may have, so that the process never runs out of descriptors.
struct ConnectionLimits {
  /// Descriptors for the broker, the registry, the metrics, the lists of the feedback service and files.
  private static let reserve = 384

  let http: Int
  /// Connections of the binary interface after their handshake.
  let binary: Int
  /// Connections of the feedback service after their handshake.
  let readers: Int
  /// Connections of both during their handshake.
  let arrivals: Int

  /// The binary interface gets the larger part, because its senders stay connected for hours.
  /// - Parameters:
  ///   - descriptors: how many the process may have open.
  ///   - http: true if this door is open; likewise the others.
  init(descriptors: Int, http hasHTTP: Bool = false, binary hasBinary: Bool = false, feedback hasFeedback: Bool = false) {
    let passing =
      (hasHTTP ? Int(HTTPServerLimits.passing) : 0) + (hasBinary ? 3 * BoundedConnections<BinaryConnection>.passing : 0)
    let room = max(descriptors - Self.reserve - passing, 64)
    let isShared = hasHTTP && hasBinary
    let old = isShared ? room / 4 * 3 : room
    http = min(4_096, isShared ? room / 4 : room)
    readers = hasFeedback ? min(1_000, old / 8) : 0
    arrivals = min(2_000, old / 8)
    binary = min(20_000, old - readers - arrivals)
  }
}

/// A door can't be opened now, but perhaps later. The command exits with status 69, so that a supervisor starts it again.
struct AddressUnavailable: Error, CustomStringConvertible {
  /// The setting that names the address.
  let setting: String
  let reason: String

  var description: String {
    "\(setting) can't be used now: \(reason)" + (setting == "gateway.http.listen" ? " (a console has --listen)" : "")
  }
}
