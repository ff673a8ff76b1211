import AMQP

enum BrokerRelease {
  static let product = "RabbitMQ"
  /// The first release whose quorum queues keep a dead letter until the next queue has it.
  private static let oldest = (major: 3, minor: 10)
  /// The newest major version with known behaviour.
  private static let newestMajor = 4

  /// Empty if the broker doesn't describe itself.
  static func findings(_ server: BrokerServer?, _ subject: String) -> [Finding] {
    guard let server, !server.product.isEmpty else { return [] }
    func finding(_ level: Finding.Level, _ sentence: String, _ remedy: String? = nil) -> [Finding] {
      [Finding(level, subject, sentence, remedy)]
    }
    let name = "\(server.product) \(server.version)"
    guard server.product == product else {
      return finding(
        .warning, "this broker is \(name): the fleet needs RabbitMQ's quorum queues", "use RabbitMQ 3.10 or newer")
    }
    guard let release = server.release else { return finding(.warning, "its version, \(name), is unknown to this program") }
    if release < oldest {
      return finding(
        .error, "\(name) is too old: its quorum queues lose dead letters that the next queue doesn't accept",
        "upgrade it to 3.10 or newer")
    }
    guard release.major > newestMajor else { return finding(.ok, name) }
    return finding(
      .warning, "\(name) is newer than the releases that the fleet is known to run with (3.10 to 4.x)",
      "try it with a test fleet first")
  }
}
