import Broker
import Foundation
import Providers
import TLS

/// The collector that receives spans by OTLP over HTTP.
public struct OTLPSettings: Sendable, Equatable {
  public var address: HTTPAddress
  /// Headers of each request. Their values may be secret.
  public var headers = OTLPHeaders()
  /// The CA of an `https` collector's certificate; nil for the system's CAs.
  public var ca: Material?
  public var proxy = ProxyChoice.direct
  /// This program's name at the collector.
  public var service = "pushfleet"

  /// - Parameter isWhole: true for the complete address, false for a base address, to which `/v1/traces` is appended.
  init?(_ text: String, isWhole: Bool = false) {
    guard var address = HTTPAddress(text, defaultPort: 4_318) else { return nil }
    if !isWhole { address.path += "/v1/traces" } else if address.path.isEmpty { address.path = "/" }
    self.address = address
  }

  /// - Returns: nil without the setting `traces`.
  static func read(_ reader: ConfigurationReader) -> OTLPSettings? {
    let headers = reader.string("tracesHeaders")
    let ca = reader.material("tracesCA")
    guard let text = reader.string("traces") else {
      if headers != nil { reader.report("tracesHeaders", "is given without traces, the collector's address") }
      if ca != nil { reader.report("tracesCA", "is given without traces, the collector's address") }
      return nil
    }
    var settings = OTLPSettings(text)
    if settings == nil { reader.report("traces", problem(text)) }
    if let headers {
      if let read = OTLPHeaders(headers) {
        settings?.headers = read
      } else {
        reader.report("tracesHeaders", OTLPHeaders.problem)
      }
    }
    settings?.ca = ca
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
    "is \(SafeText.value(text)): http:// or https://, a host, and a port where it isn't 4318, as of an OpenTelemetry collector"
  }
}

extension Configuration {
  /// Reads the standard variables of OpenTelemetry: the collector, its headers, its CA, and this program's name. A setting wins
  /// over a variable. A variable only for traces (`…_TRACES_…`) wins over the general variable.
  mutating func takeTraces(from environment: [String: String], _ source: ConfigurationSource) {
    func exporter(_ name: String) -> (variable: String, value: String)? {
      environment.given("OTEL_EXPORTER_OTLP_TRACES_" + name, "OTEL_EXPORTER_OTLP_" + name)
    }
    let isOff = environment["OTEL_TRACES_EXPORTER"] == "none" || environment["OTEL_SDK_DISABLED"] == "true"
    if traces == nil, !isOff, let (variable, text) = exporter("ENDPOINT") {
      traces = OTLPSettings(text, isWhole: variable.contains("_TRACES_"))
      if traces == nil {
        source.report(ConfigurationError(key: "traces", variable: variable, problem: OTLPSettings.problem(text)))
      }
    }
    guard let address = traces?.address else { return }
    // `HTTPS_PROXY` doesn't apply to plain HTTP.
    traces?.proxy = proxy ?? (address.isTLS ? source.proxy : .direct)
    if traces?.headers.isEmpty == true, let (variable, text) = exporter("HEADERS") {
      if let headers = OTLPHeaders(text) {
        traces?.headers = headers
      } else {
        source.report(ConfigurationError(key: "tracesHeaders", variable: variable, problem: OTLPHeaders.problem))
      }
    }
    if traces?.ca == nil, let (_, path) = exporter("CERTIFICATE") {
      traces?.ca = .file(ConfigurationSource(directory: FileManager.default.currentDirectoryPath).absolute(path))
    }
    if let name = environment["OTEL_SERVICE_NAME"], !name.isEmpty { traces?.service = name }
  }
}

extension [String: String] {
  /// The first of these variables with a value that isn't empty.
  func given(_ variables: String...) -> (variable: String, value: String)? {
    for variable in variables { if let value = self[variable], !value.isEmpty { return (variable, value) } }
    return nil
  }
}

extension TraceSettings {
  /// - Returns: nil for `keep: "none"`.
  static func read(_ reader: ConfigurationReader) -> TraceSettings? {
    let megabytes = reader.number("megabytes")
    let perSecond = reader.number("perSecond")
    return reader.time("keep").map { TraceSettings(keep: $0 / 1_000, megabytes: megabytes, perSecond: perSecond) }
  }
}
