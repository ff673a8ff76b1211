import Providers
import PushCore
import Reactor

extension ProxyChoice {
  /// Reads `HTTPS_PROXY` and `NO_PROXY`, or the same names in small letters.
  static func read(_ environment: [String: String], _ source: ConfigurationSource) -> ProxyChoice {
    guard let (variable, text) = environment.given("HTTPS_PROXY", "https_proxy") else { return .direct }
    // Other programs also accept an address without a scheme there.
    guard let address = ProxyAddress(text.contains("://") ? text : "http://\(text)") else {
      source.report(ConfigurationError(key: "proxy", variable: variable, problem: problem(text)))
      return .direct
    }
    return ProxyChoice(address, except: ProxyExceptions(environment.given("NO_PROXY", "no_proxy")?.value ?? ""))
  }

  fileprivate static func problem(_ text: String) -> String {
    let scheme = text.firstRange(of: "://").map { text[..<$0.lowerBound].lowercased() }
    guard let scheme, scheme != "http", (1...16).contains(scheme.utf8.count), scheme.allSatisfy(isOfScheme) else {
      return "must be http://host:port, http://user:password@host:port or none"
    }
    return "is an address with \(scheme)://; only proxies with http:// addresses are supported"
  }

  private static func isOfScheme(_ character: Character) -> Bool {
    character.isASCII && (character.isLetter || character.isNumber)
  }
}

extension ConfigurationReader {
  /// The proxy of a credential, or the fleet's.
  func proxy() -> ProxyChoice {
    guard let text = string("proxy") else { return source.proxy }
    if text == "none" { return .direct }
    if let address = ProxyAddress(text) { return ProxyChoice(address) }
    report("proxy", ProxyChoice.problem(text))
    return .direct
  }
}
