/// The broker operations that the doors of APNs' binary interface need.
protocol BinaryBroker: AnyObject {
  /// Publishes once and reports whether the broker confirmed the message.
  func publish(_ request: BinaryRequest, _ answered: @escaping (_ isConfirmed: Bool) -> Void)
  /// Counts the ready messages of a queue; nil if the broker can't be asked now.
  func countReady(_ queue: String, _ answered: @escaping (Int?) -> Void)
}

extension GatewayBroker: BinaryBroker {
  func publish(_ request: BinaryRequest, _ answered: @escaping (_ isConfirmed: Bool) -> Void) {
    // The user is known only here, because it depends on the broker that is connected.
    var properties = request.properties
    properties.userID = user
    publish(
      exchange: topology.sendExchange, routingKey: request.priority.rawValue, properties: properties, body: request.body,
      isPatient: true
    ) { answered($0 == .confirmed) }
  }
}
