import AMQP

extension Configuration {
  /// What can be used, but is likely to be a mistake.
  var warnings: [String] {
    var warnings: [String] = []
    for broker in brokers where !broker.isTLS && !broker.password.isEmpty && !Self.isLoopback(broker.host) {
      warnings.append("broker: the password crosses the network to \(broker.host) in plain text; use amqps")
    }
    for (place, source) in credentials {
      guard case .apns(.token(.file(let path), let keyID, _), _, _, _) = source,
        let named = path.firstMatch(of: /\/AuthKey_([A-Za-z0-9]{10})\.p8$/)?.1, named != keyID
      else { continue }
      warnings.append("\(place.setting).keyID is \(keyID), but the file is named for the key \(named)")
    }
    return warnings
  }

  private static func isLoopback(_ host: String) -> Bool {
    host == "localhost" || host == "::1" || host.wholeMatch(of: /127\.[0-9]+\.[0-9]+\.[0-9]+/) != nil
  }
}
