import AMQP

/// Whether a broker's release is one that the fleet can rely on.
enum BrokerRelease {
  static let product = "RabbitMQ"
  /// The first whose quorum queues keep a dead letter until the next queue has it.
  private static let oldest = (major: 3, minor: 10)
  /// The last whose behaviour is known.
  private static let newestMajor = 4

  /// nil where the broker says nothing of itself.
  static func finding(_ server: BrokerServer?) -> (level: Finding.Level, sentence: String, remedy: String?)? {
    guard let server, !server.product.isEmpty else { return nil }
    let name = "\(server.product) \(server.version)"
    guard server.product == product else {
      return (.warning, "it is \(name): the fleet is made for RabbitMQ's quorum queues", "use RabbitMQ 3.10 or newer")
    }
    guard let release = server.release else { return (.warning, "its version is \(name), of which nothing is known", nil) }
    if release < oldest {
      return (
        .error, "\(name) is too old: its quorum queues lose dead letters that the next queue doesn't take",
        "bring it to 3.10 or newer"
      )
    }
    if release.major > newestMajor {
      return (
        .warning, "\(name) is newer than what the fleet is known to run with (3.10 to 4.x)",
        "try it with a fleet for tests first"
      )
    }
    return (.ok, name, nil)
  }
}
