import BrokerModel
import TestSupport
import Testing

/// What the live suites run against: RabbitMQ itself, and the model that stands for it in simulations. A test that passes with one only
/// says something about the model.
enum BrokerKind: String, CaseIterable, CustomTestStringConvertible {
  case rabbitMQ = "RabbitMQ"
  case model = "the model"

  var testDescription: String { rawValue }

  /// One for the whole test process.
  var shared: any LiveBroker {
    get throws {
      switch self {
      case .rabbitMQ: try Broker.shared
      case .model: try ModelServer.shared
      }
    }
  }

  /// One of the test's own, to be stopped by it.
  func make(_ certificates: TestCertificates? = nil) throws -> any LiveBroker {
    switch self {
    case .rabbitMQ:
      try Broker(certificates: certificates.map { ($0.authority, $0.server, $0.serverKey) })
    case .model:
      try ModelServer(tls: certificates.map { ($0.server, $0.serverKey) })
    }
  }
}

/// What tests ask of a broker beside what its clients say to it.
protocol LiveBroker: Sendable {
  var port: UInt16 { get }
  var uri: String { get }
  var tlsURI: String { get }
  func deleteQueue(_ name: String) throws
  func purgeQueue(_ name: String) throws
  /// Dead letters of a queue that no other queue has taken yet.
  func deadLetters(of queue: String) throws -> Int
  func raiseMemoryAlarm() throws
  func clearMemoryAlarm() throws
  /// Whether a kill would leave a new queue as it is.
  func isOnDisk(queue: String) -> Bool
  func kill9()
  func restart() throws
  func freeze()
  func resume()
  func closeConnections(named word: String) throws
  func stop()
}

extension Broker: LiveBroker {
  func deleteQueue(_ name: String) throws {
    try evaluate(
      """
      {ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, <<"\(name)">>)),
      {ok, _} = rabbit_amqqueue:delete(Q, false, false, <<"test">>), ok.
      """)
  }
  func purgeQueue(_ name: String) throws { try control("purge_queue", name) }
  func deadLetters(of queue: String) throws -> Int {
    let answer = try evaluate(
      """
      {ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, <<"\(queue)">>)),
      [{_, N}] = rabbit_quorum_queue:info(Q, [messages_dlx]), N.
      """)
    return Int(answer.filter(\.isNumber)) ?? -1
  }
}

extension ModelServer: LiveBroker {
  var uri: String { "amqp://guest:guest@127.0.0.1:\(port)" }
  var tlsURI: String { "amqps://guest:guest@127.0.0.1:\(port)" }
  func deleteQueue(_ name: String) { perform { $0.deleteQueue(name, at: $1) } }
  func purgeQueue(_ name: String) { perform { $0.purgeQueue(name, at: $1) } }
  func deadLetters(of queue: String) -> Int { perform { broker, _ in broker.depth(of: queue)?.deadLetters ?? 0 } }
  func raiseMemoryAlarm() { perform { broker, _ in broker.raiseAlarm() } }
  func clearMemoryAlarm() { perform { $0.clearAlarm(at: $1) } }
  func isOnDisk(queue: String) -> Bool { true }
  func kill9() { perform { $0.crash(at: $1) } }
  func restart() { perform { $0.start(at: $1) } }
  func freeze() { perform { broker, _ in broker.freeze() } }
  func resume() { perform { $0.resume(at: $1) } }
  func closeConnections(named word: String) {
    perform { $0.closeConnections(reason: "test", at: $1) { client in client.name.contains(word) } }
  }
}
