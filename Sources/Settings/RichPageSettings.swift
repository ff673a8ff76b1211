import DeviceRegistry
import Foundation
import PushCore

/// Settings of content pages. A page holds a `data.ext` that is too long for a push.
public struct RichPageSettings: Sendable, Equatable {
  /// The external address of the gateway's HTTP listener, without a trailing slash.
  public var url: String
  /// Milliseconds for which a page is available.
  public var keep: Int64
  /// The most bytes of a page's content.
  public var bytes: Int
  /// The most bytes of all pages of an application.
  public var most: Int64

  package func address(of name: [UInt8]) -> [UInt8] { Array(url.utf8) + Self.path + name }

  /// An address of the usual length that belongs to no page.
  package var example: [UInt8] { address(of: [UInt8](repeating: UInt8(ascii: "x"), count: ContentPage.nameLength)) }

  private static let path = Array("/pages/".utf8)

  /// - Returns: nil without an address. Pages are then off.
  static func read(_ reader: ConfigurationReader) -> RichPageSettings? {
    let keep = reader.time("keep") ?? 0
    let bytes = reader.number("bytes")
    let most = Int64(reader.number("megabytes")) << 20
    guard let text = reader.string("url") else { return nil }
    if let url = base(text) { return RichPageSettings(url: url, keep: keep, bytes: bytes, most: most) }
    reader.report(
      "url",
      "is \(SafeText.value(text)): https:// (or http://) and a host, with a path where the gateway is behind one, \(longestURL) bytes at most"
    )
    return nil
  }

  /// In bytes. The limit exists because the push's payload contains the address.
  private static let longestURL = 200

  private static func base(_ text: String) -> String? {
    guard text.utf8.count <= longestURL, text.utf8.allSatisfy({ (0x21..<0x7F).contains($0) }),
      !text.contains(where: { "\"\\<>^`{|}".contains($0) }),
      let url = URLComponents(string: text), let scheme = url.scheme, scheme == "https" || scheme == "http",
      let host = url.host, !host.isEmpty, url.user == nil, url.password == nil, !text.contains("?"), !text.contains("#"),
      !url.path.contains("//"), url.port.map({ (1...65_535).contains($0) }) ?? true
    else { return nil }
    return text.hasSuffix("/") ? String(text.dropLast()) : text
  }
}

extension Configuration {
  /// nil if pages are off because the registry or the address is missing.
  public var usedRichPages: RichPageSettings? { registry == nil ? nil : richPages }

  /// A hint that names the settings that the application's pages lack; nil if no setting is missing or the app has no `mps`.
  public func hintOfPages(_ app: AppConfiguration) -> String? {
    guard app.isUPMC, usedRichPages == nil else { return nil }
    let missing = [richPages == nil ? "richPages.url" : nil, registry == nil ? "registry" : nil].compactMap(\.self)
    return "data.ext would be sent as the address of a page if \(missing.joined(separator: " and ")) were set"
  }

  public func limits(of app: AppConfiguration) -> RequestLimits {
    var limits = limits
    limits.ignoresUnknownNames = app.ignoresUnknownNames
    limits.countsBadges = app.countsBadges
    limits.extensionBytes = app.isUPMC ? usedRichPages?.bytes : nil
    return limits
  }
}
