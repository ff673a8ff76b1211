import DeviceRegistry
import Foundation
import PushCore

/// Pages for `data.ext` where a push has no room for it.
public struct RichPageSettings: Sendable, Equatable {
  /// Where the gateway's HTTP door is reached from outside, without a slash at its end.
  public var url: String
  /// Milliseconds for which a page can be fetched.
  public var keep: Int64
  /// Bytes that the content of one may have.
  public var bytes: Int
  /// Bytes that the pages of an application may have together.
  public var most: Int64

  /// Where the gateway has the page of this name.
  package func address(of name: [UInt8]) -> [UInt8] { Array(url.utf8) + Self.path + name }

  /// As long as every address, and of no page.
  package var example: [UInt8] { address(of: [UInt8](repeating: UInt8(ascii: "x"), count: ContentPage.nameLength)) }

  private static let path = Array("/pages/".utf8)
}

extension RichPageSettings {
  /// nil where no address is given, and nothing becomes a page.
  static func read(_ reader: ConfigurationReader) throws(ConfigurationError) -> RichPageSettings? {
    let keep = try reader.string("keep") ?? "30d"
    guard let last = keep.last, let factor: Int64 = ["s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000][last],
      let count = Int64(keep.dropLast()), count > 0, count <= longest / factor
    else {
      throw reader.error("keep", "is \(Shown.value(keep)): a number with s, m, h or d, from 1s to 3650d, such as 30d")
    }
    let bytes = try reader.integer("bytes", in: 1_024...262_144) ?? 65_536
    let most = Int64(try reader.integer("megabytes", in: 1...1_048_576) ?? 1_024) << 20
    guard let text = try reader.string("url") else { return nil }
    guard let url = base(text) else {
      throw reader.error(
        "url",
        "is \(Shown.value(text)): https:// (or http://) and a host, with a path where the gateway is behind one, \(longestURL) bytes at most"
      )
    }
    return RichPageSettings(url: url, keep: count * factor, bytes: bytes, most: most)
  }

  /// It takes its part of what a push can hold.
  private static let longestURL = 200
  /// Ten years.
  private static let longest: Int64 = 3_650 * 86_400_000

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
  /// nil where nothing becomes a page: there is no registry to keep it, or no address to fetch it at.
  public var usedRichPages: RichPageSettings? { registry == nil ? nil : richPages }

  /// What is missing for pages of the application; nil where nothing is, or has no `mps`.
  public func hintOfPages(_ app: AppConfiguration) -> String? {
    guard app.isUPMC, usedRichPages == nil else { return nil }
    let missing = [richPages == nil ? "richPages.url" : nil, registry == nil ? "registry" : nil].compactMap(\.self)
    return "data.ext would be sent as the address of a page if \(missing.joined(separator: " and ")) were set"
  }

  /// What a request to the application may have.
  public func limits(of app: AppConfiguration) -> RequestLimits {
    var limits = limits
    limits.ignoresUnknownNames = app.ignoresUnknownNames
    limits.countsBadges = app.countsBadges
    limits.extensionBytes = app.isUPMC ? usedRichPages?.bytes : nil
    return limits
  }
}
