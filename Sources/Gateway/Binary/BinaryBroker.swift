extension GatewayBroker {
  /// Publishes once and reports whether the broker confirmed the message.
  func publish(_ request: BinaryRequest, _ answered: @escaping (_ isConfirmed: Bool) -> Void) {
    // The user is known only here, because it depends on the broker that is connected.
    var properties = request.properties
    properties.userID = user
    publish(
      exchange: Array(topology.sendExchange.utf8), routingKey: Array(request.priority.rawValue.utf8), properties: properties,
      body: request.body, isPatient: true
    ) { answered($0 == .confirmed) }
  }
}
