import HTTP2
import Reactor
import TLS

public struct FCMCredentials: Sendable {
  public let account: ServiceAccount
  public let target: DialTarget
  public let tokenTarget: DialTarget
  let tokenPath: String

  /// FCM's own address.
  public static let google = Endpoint(host: "fcm.googleapis.com", port: 443)

  /// - Parameters:
  ///   - endpoint: replaces FCM's address. It also serves access tokens, at the path of the account's `token_uri`. For FCM itself,
  ///     `token_uri` must be Google's: it receives signed assertions, and its tokens are trusted.
  ///   - tls: for both; may be shared.
  ///   - proxy: for both.
  public init(
    account: ServiceAccount, endpoint: Endpoint? = nil, tls: TLSClientContext, proxy: ProxyChoice = .direct
  ) throws(CredentialError) {
    let named = TokenEndpoint(account.tokenURI)
    if endpoint == nil, let host = named?.endpoint.host, !host.lowercased().hasSuffix(".googleapis.com") {
      throw CredentialError(file: nil, reason: "its token_uri is at \(host), which is not Google's")
    }
    try self.init(
      account: account, target: DialTarget(endpoint ?? Self.google, tls: tls, through: proxy),
      tokenEndpoint: endpoint.flatMap { TokenEndpoint("https://\($0)\(named?.path ?? "/token")") }, tls: tls, proxy: proxy)
  }

  package init(
    account: ServiceAccount, target: DialTarget, tokenEndpoint: TokenEndpoint?, tls: TLSClientContext?,
    proxy: ProxyChoice = .direct
  ) throws(CredentialError) {
    guard let token = tokenEndpoint ?? TokenEndpoint(account.tokenURI) else {
      throw CredentialError(file: nil, reason: "token_uri is not an https URL")
    }
    self.account = account
    self.target = target
    tokenTarget = DialTarget(token.endpoint, tls: tls, through: proxy)
    tokenPath = token.path
  }

  /// The header block of `POST /v1/projects/<project>/messages:send` (FCM HTTP v1 API). It has no variables, because the access
  /// token changes only hourly.
  /// - Parameter token: printable ASCII.
  func headers(_ token: [UInt8]) -> HeaderTemplate {
    HeaderTemplate(
      constant: [
        (":method", "POST"), (":scheme", "https"), (":authority", target.authority),
        (":path", "/v1/projects/\(HTTPFetch.encoded(account.project))/messages:send"), ("content-type", "application/json"),
        ("authorization", "Bearer \(String(decoding: token, as: UTF8.self))"),
      ], variable: [])
  }
}
