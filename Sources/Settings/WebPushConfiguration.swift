import Foundation
import Providers
import PushCore

/// The settings of web push.
public struct WebPushConfiguration: Sendable, Hashable {
  /// VAPID keys in PEM; never empty. The first is for new subscriptions.
  public var keys: [Material]
  /// The operator's address: `mailto:` or `https:`.
  public var subject: String
  /// The allowed push services, in the form of ``HostPolicy``.
  public var hosts: [String]
  public var ca: Material?
  public var proxy: ProxyChoice

  init(_ reader: ConfigurationReader) {
    keys = reader.materials("key")
    if keys.isEmpty {
      reader.report("key", "is missing: a VAPID key, as `pushfleet vapid create` makes it")
      keys = [.missing]
    }
    subject = reader.requiredString("subject", for: "mailto: and your e-mail address, or your https:// address")
    if !Self.isSubject(subject) {
      reader.report("subject", "must be mailto:name@example.com or https://example.com: Apple refuses other forms")
    }
    hosts = reader.strings("hosts") ?? []
    if hosts.isEmpty {
      reader.report("hosts", "is empty: name push services, or leave it out for those of the browsers")
    }
    for host in hosts where HostPolicy([host]) == nil {
      reader.report("hosts", "has \(SafeText.value(host)): a host is a name, *. and a domain, or * for every public host")
    }
    ca = reader.material("ca")
    proxy = reader.proxy()
  }

  /// Apple refuses tokens whose subject has no scheme, white space, angle brackets, or the host `localhost`.
  static func isSubject(_ text: String) -> Bool {
    guard text.utf8.count <= 255, text.utf8.allSatisfy({ 0x21...0x7E ~= $0 && !#"<>"\"#.utf8.contains($0) }) else {
      return false
    }
    if text.hasPrefix("mailto:") {
      let parts = text.dropFirst("mailto:".count).split(separator: "@", omittingEmptySubsequences: false)
      return parts.count == 2 && !parts[0].isEmpty && isDomain(parts[1])
    }
    guard text.hasPrefix("https://"), let url = URLComponents(string: text), url.user == nil else { return false }
    return isDomain(url.host ?? "")
  }

  /// True for several labels with dots between them.
  private static func isDomain(_ text: some StringProtocol) -> Bool {
    let labels = text.split(separator: ".", omittingEmptySubsequences: false)
    return labels.count > 1 && labels.allSatisfy { !$0.isEmpty && $0.allSatisfy(isOfName) }
  }

  private static func isOfName(_ character: Character) -> Bool {
    character.isASCII && (character.isLetter || character.isNumber || character == "-")
  }
}
