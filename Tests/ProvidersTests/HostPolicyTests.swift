import Providers
import Testing

@Suite("The allowed push services")
struct HostPolicyTests {
  @Test("are names, domains, or all; only an exact name may be a private address")
  func globs() throws {
    let policy = try #require(HostPolicy(["fcm.googleapis.com", "*.push.apple.com", "LocalHost", "::1"]))
    for host in ["fcm.googleapis.com", "web.push.apple.com", "a.b.push.apple.com", "localhost", "::1"] {
      #expect(policy.allows(host), "\(host)")
    }
    for host in ["push.apple.com", ".push.apple.com", "evilpush.apple.com", "googleapis.com", "127.0.0.1", ""] {
      #expect(!policy.allows(host), "\(host)")
    }
    #expect(policy.addresses(of: "localhost") == .any && policy.addresses(of: "::1") == .any)
    #expect(policy.addresses(of: "web.push.apple.com") == .publicOnly)
    let open = try #require(HostPolicy(["*", "ntfy.home", "*.push.apple.com"]))
    #expect(open.allows("any.example") && open.addresses(of: "any.example") == .publicOfStranger)
    #expect(open.addresses(of: "ntfy.home") == .any && open.addresses(of: "web.push.apple.com") == .publicOnly)
  }

  @Test(
    "have no other form",
    arguments: ["", "*.", "*.*", "a.*", "*a.example", "https://a.example", "a.example:443", "a b", "a/b", "[::1]"])
  func refused(glob: String) { #expect(HostPolicy([glob]) == nil) }
}
