import Foundation
import TLS

/// Where spans go: a collector that speaks OTLP over HTTP.
public struct OTLPSettings: Sendable, Equatable {
  public var address: HTTPAddress
  /// Added to each request; the values may be secrets.
  public var headers = OTLPHeaders()
  /// Who signed an `https` collector's certificate; nil for the system's authorities.
  public var ca: Material?
  /// What the collector knows this program as.
  public var service = "pushfleet"

  /// - Parameter text: the base address, to which `/v1/traces` is added.
  init?(_ text: String) {
    guard var address = HTTPAddress(text, defaultPort: 4_318) else { return nil }
    address.path += "/v1/traces"
    self.address = address
  }

  /// - Parameter text: the whole address.
  fileprivate init?(whole text: String) {
    guard var address = HTTPAddress(text, defaultPort: 4_318) else { return nil }
    if address.path.isEmpty { address.path = "/" }
    self.address = address
  }
}

extension OTLPSettings {
  /// nil where the setting is absent.
  static func read(_ reader: ConfigurationReader) throws(ConfigurationError) -> OTLPSettings? {
    let headers = try reader.string("tracesHeaders")
    let ca = try reader.material("tracesCA")
    guard let text = try reader.string("traces") else {
      if headers != nil { throw reader.error("tracesHeaders", "is given without traces, the collector's address") }
      if ca != nil { throw reader.error("tracesCA", "is given without traces, the collector's address") }
      return nil
    }
    guard var settings = OTLPSettings(text) else { throw reader.error("traces", problem(text)) }
    if let headers {
      guard let read = OTLPHeaders(headers) else { throw reader.error("tracesHeaders", OTLPHeaders.problem) }
      settings.headers = read
    }
    settings.ca = ca
    return settings
  }

  /// nil for plain HTTP.
  package func tls() throws(ConfigurationError) -> TLSClientContext? {
    guard address.isTLS else { return nil }
    let pem: [UInt8]? = if let ca { try ca.bytes(for: "tracesCA") } else { nil }
    return try usable(pem == nil ? "traces" : "tracesCA") { () throws(CredentialError) in
      let trust = if let pem { try TrustStore(pem: pem, file: ca?.path) } else { try TrustStore.system() }
      return try TLSClientContext(trust: trust)
    }
  }

  fileprivate static func problem(_ text: String) -> String {
    "is \(Shown.value(text)): http:// or https://, a host, and a port where it isn't 4318, as of an OpenTelemetry collector"
  }
}

extension Configuration {
  /// What OpenTelemetry's specification has variables for: the collector, unless the setting names one, its headers and authority unless
  /// settings name them, and the program's name. A variable for traces alone goes before the one for everything.
  mutating func takeTraces(from environment: [String: String]) throws(ConfigurationError) {
    let exporter = OTLPEnvironment(environment)
    let isOff = environment["OTEL_TRACES_EXPORTER"] == "none" || environment["OTEL_SDK_DISABLED"] == "true"
    if traces == nil, !isOff, let (variable, text) = exporter["ENDPOINT"] {
      guard let settings = variable == OTLPEnvironment.general + "ENDPOINT" ? OTLPSettings(text) : OTLPSettings(whole: text)
      else {
        throw ConfigurationError(key: "traces", variable: variable, problem: OTLPSettings.problem(text))
      }
      traces = settings
    }
    guard traces != nil else { return }
    if traces?.headers.isEmpty == true, let (variable, text) = exporter["HEADERS"] {
      guard let headers = OTLPHeaders(text) else {
        throw ConfigurationError(key: "tracesHeaders", variable: variable, problem: OTLPHeaders.problem)
      }
      traces?.headers = headers
    }
    if traces?.ca == nil, let (_, path) = exporter["CERTIFICATE"] {
      traces?.ca = .file(ConfigurationSource(directory: FileManager.default.currentDirectoryPath).absolute(path))
    }
    if let name = environment["OTEL_SERVICE_NAME"], !name.isEmpty { traces?.service = name }
  }
}

/// The variables by which OpenTelemetry's exporters are configured.
private struct OTLPEnvironment {
  static let general = "OTEL_EXPORTER_OTLP_"
  private let environment: [String: String]

  init(_ environment: [String: String]) { self.environment = environment }

  /// A value that isn't empty, and the variable that it came from.
  subscript(name: String) -> (variable: String, value: String)? {
    [Self.general + "TRACES_" + name, Self.general + name].lazy.compactMap { variable in
      environment[variable].flatMap { $0.isEmpty ? nil : (variable, $0) }
    }.first
  }
}
