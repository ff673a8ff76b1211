import Foundation

/// Additional headers for the collector, in the form of `OTEL_EXPORTER_OTLP_HEADERS`: `name=value,name=value`, with
/// percent-encoded values. The description contains no values.
public struct OTLPHeaders: Sendable, Equatable {
  package let fields: [(name: String, value: String)]

  init() { fields = [] }

  /// nil for any other form.
  init?(_ text: String) {
    var fields: [(name: String, value: String)] = []
    for entry in text.split(separator: ",") {
      let entry = entry.drop { $0.isWhitespace }
      if entry.isEmpty { continue }
      guard let equals = entry.firstIndex(of: "="),
        let value = entry[entry.index(after: equals)...].trimmingCharacters(in: .whitespaces).removingPercentEncoding
      else { return nil }
      let name = entry[..<equals].trimmingCharacters(in: .whitespaces)
      guard Self.isName(name), !Self.own.contains(name.lowercased()),
        value.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F })
      else { return nil }
      fields.append((name, value))
    }
    guard fields.count <= Self.most else { return nil }
    self.fields = fields
  }

  var isEmpty: Bool { fields.isEmpty }

  public static func == (a: OTLPHeaders, b: OTLPHeaders) -> Bool { a.fields.elementsEqual(b.fields, by: ==) }

  static let problem = "must be name=value, several with commas between them, values percent-encoded: headers for the collector"

  private static let most = 50
  /// Headers that every request already has.
  private static let own: Set<String> = [
    "host", "connection", "content-length", "content-type", "transfer-encoding", "user-agent",
  ]

  /// RFC 9110, token.
  static func isName(_ text: String) -> Bool { text.wholeMatch(of: /[0-9A-Za-z!#$%&'*+\-.^_`|~]+/) != nil }
}

extension OTLPHeaders: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { fields.map(\.name).joined(separator: ",") }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: []) }
}
