/// What the doors of APNs' binary interface need of the broker.
protocol BinaryBroker: AnyObject {
  /// Publishes once; the answer says whether the broker has confirmed it.
  func publish(_ request: BinaryRequest, _ answered: @escaping (_ isConfirmed: Bool) -> Void)
  /// How many messages are ready in a queue; nil where the broker can't be asked now.
  func countReady(_ queue: String, _ answered: @escaping (Int?) -> Void)
}

extension GatewayBroker: BinaryBroker {
  func publish(_ request: BinaryRequest, _ answered: @escaping (_ isConfirmed: Bool) -> Void) {
    // Which broker, and so which user, is known no sooner.
    var properties = request.properties
    properties.userID = user
    publish(
      exchange: topology.sendExchange, routingKey: request.priority.rawValue, properties: properties, body: request.body,
      isPatient: true
    ) { answered($0 == .confirmed) }
  }
}
