/// The addresses that a link may connect to.
public enum AddressPolicy: Sendable, Hashable {
  case any
  /// For hosts that strangers name: none of the host's addresses may belong to this machine, its networks or another reserved
  /// range.
  case publicOnly
  /// The same, for a host of a stranger's domain: its name servers may be slow, so another resolver asks them.
  case publicOfStranger

  /// Why the addresses of a host may not be used; nil if all of them may.
  func refusal(of addresses: [SocketAddress], for host: String) -> String? {
    guard self != .any, let address = addresses.first(where: { !$0.isPublic })?.endpoint.host else { return nil }
    return "\(address == host ? host : "\(host) resolves to \(address), which") is not a public address"
  }
}
