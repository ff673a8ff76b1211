import AMQP

extension Configuration {
  /// What can be used, but is likely to be a mistake.
  package var warnings: [String] {
    var warnings: [String] = []
    for broker in brokers where !broker.isTLS && !broker.password.isEmpty && !Self.isLoopback(broker.host) {
      warnings.append("broker: the password crosses the network to \(broker.host) in plain text; use amqps")
    }
    for (place, source) in credentials {
      guard case .apns(.token(.file(let path), let keyID, _), _, _, _) = source,
        let named = Self.key(named: path), named != keyID
      else { continue }
      warnings.append("\(place.setting).keyID is \(keyID), but the file is named for the key \(named)")
    }
    if richPages != nil, registry == nil {
      warnings.append("richPages: needs registry, and none is set: nothing becomes a page")
    }
    if gateway?.apns?.clients != nil, binaryApps.isEmpty {
      warnings.append("gateway.apns: is a door for nobody: no application has settings for APNs (apps.<id>.apns)")
    }
    return warnings
  }

  /// The key that Apple's name of a file says it holds: `AuthKey_` and the key's id.
  private static func key(named path: String) -> Substring? {
    guard let name = path.split(separator: "/").last, name.hasPrefix("AuthKey_"), name.hasSuffix(".p8") else { return nil }
    let id = name.dropFirst("AuthKey_".count).dropLast(".p8".count)
    return id.utf8.count == 10 && id.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) } ? id : nil
  }

  private static func isLoopback(_ host: String) -> Bool {
    host == "localhost" || host == "::1" || host.wholeMatch(of: /127\.[0-9]+\.[0-9]+\.[0-9]+/) != nil
  }
}
