import Foundation
import PushCore
import Reactor

/// The console's login by a proxy that has authenticated its users, such as oauth2-proxy.
public struct ProxyLoginSettings: Sendable, Equatable {
  /// The proxies. A header from another address counts for nothing.
  let proxies: [AddressBlock]
  /// The header with the user's name, in lower case.
  public let userHeader: String
  /// The header with the user's groups, in lower case; nil if none is believed.
  public let groupsHeader: String?
  /// Groups that use `operateKey`.
  let operators: Set<String>
  /// Ids of gateway keys. A user has the rights and applications of one of them.
  let viewKey: String?
  let operateKey: String?

  private static let longestUser = 200

  /// The headers that tell who the user is.
  public var ofUser: [String] { [userHeader, groupsHeader].compactMap(\.self) }
  /// All headers that a proxy is believed.
  public var headers: [String] { ofUser + ["x-forwarded-for", "x-forwarded-proto"] }

  init(_ reader: ConfigurationReader) {
    let ranges = reader.strings("proxies") ?? []
    proxies = ranges.compactMap(AddressBlock.init)
    for text in ranges where AddressBlock(text) == nil {
      reader.report("proxies", "has \(SafeText.value(text)): write an address, or a network such as 10.0.0.0/8")
    }
    if ranges.isEmpty { reader.report("proxies", "is empty: name the proxies that authenticate users") }
    userHeader = reader.requiredString("userHeader", for: "the header that names the user").lowercased()
    groupsHeader = reader.string("groupsHeader")?.lowercased()
    for (key, name) in [("userHeader", userHeader), ("groupsHeader", groupsHeader ?? "")]
    where !name.isEmpty && !OTLPHeaders.isName(name) {
      reader.report(key, "is \(SafeText.value(name)): write the name of a header")
    }
    operators = Set(reader.strings("operators") ?? [])
    (viewKey, operateKey) = (reader.string("viewKey"), reader.string("operateKey"))
    if viewKey == nil, operateKey == nil {
      reader.report("viewKey", "is missing, and operateKey as well: name the id of a key")
    }
    if operateKey != nil, operators.isEmpty { reader.report("operators", "is empty: name the groups of operateKey") }
    if operateKey != nil, groupsHeader == nil { reader.report("groupsHeader", "is missing: the header with the user's groups") }
  }

  /// True for the address of a proxy.
  public func isProxy(_ peer: [UInt8]) -> Bool {
    // A listener for both families shows an IPv4 address like this.
    let text = String(decoding: peer, as: UTF8.self)
    guard let address = NumericAddress.bytes(text.hasPrefix("::ffff:") ? String(text.dropFirst(7)) : text) else { return false }
    return proxies.contains { $0.contains(address) }
  }

  /// The user whom a proxy names.
  /// - Parameters:
  ///   - peer: the address of the connection.
  ///   - header: returns the value of a header.
  /// - Returns: nil if no proxy names one; otherwise the id of the user's key, nil for a user who has none.
  public func user(peer: [UInt8], header: (String) -> [UInt8]?) -> (name: [UInt8], key: [UInt8]?)? {
    guard let name = header(userHeader), (1...Self.longestUser).contains(name.count),
      name.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }),
      String(validating: name, as: UTF8.self) != nil, isProxy(peer)
    else { return nil }
    let groups = groupsHeader.flatMap(header).map { String(decoding: $0, as: UTF8.self) }?.split(separator: ",") ?? []
    let isOperator = groups.contains { operators.contains($0.trimmingCharacters(in: .whitespaces)) }
    return (name, (isOperator ? operateKey ?? viewKey : viewKey).map { Array($0.utf8) })
  }
}
