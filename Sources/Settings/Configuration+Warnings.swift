import AMQP

extension Configuration {
  /// Usable settings that are probably mistakes.
  package var warnings: [String] {
    var warnings: [String] = []
    for broker in brokers where !broker.isTLS && !broker.password.isEmpty && !Self.isLoopback(broker.host) {
      warnings.append("broker: the password crosses the network to \(broker.host) in plain text; use amqps")
    }
    for (place, source) in credentials {
      guard case .apns(.token(.file(let path), let keyID, _), _) = source.kind,
        let named = Self.key(named: path), named != keyID
      else { continue }
      warnings.append("\(place.setting).keyID is \(keyID), but the file is named for the key \(named)")
    }
    if richPages != nil, registry == nil {
      warnings.append("richPages: needs registry, which is not set: no request becomes a page")
    }
    if gateway?.apns?.clients != nil, binaryApps.isEmpty {
      warnings.append("gateway.apns: nobody can use it: no application has settings for APNs (apps.<id>.apns)")
    }
    return warnings
  }

  /// The key id in a file name of Apple's form: `AuthKey_` and the id.
  private static func key(named path: String) -> Substring? {
    guard let name = path.split(separator: "/").last, name.hasPrefix("AuthKey_"), name.hasSuffix(".p8") else { return nil }
    let id = name.dropFirst("AuthKey_".count).dropLast(".p8".count)
    return id.utf8.count == 10 && id.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) } ? id : nil
  }

  private static func isLoopback(_ host: String) -> Bool {
    host == "localhost" || host == "::1" || host.wholeMatch(of: /127\.[0-9]+\.[0-9]+\.[0-9]+/) != nil
  }
}
