import Reactor
import TLS

/// What an FCM pool needs to know: the account it sends for, and where to.
public struct FCMCredentials: Sendable {
  public let account: ServiceAccount
  public let target: DialTarget
  public let tokenTarget: DialTarget
  let tokenPath: String

  /// - Parameters:
  ///   - endpoint: instead of `fcm.googleapis.com`.
  ///   - tokenEndpoint: instead of the account's `token_uri`, which for FCM itself must be Google's: it is sent signed assertions, and
  ///     its tokens are believed.
  ///   - tls: for both; shared by whoever trusts the same authorities.
  public init(
    account: ServiceAccount, endpoint: Endpoint = Endpoint(host: "fcm.googleapis.com", port: 443),
    tokenEndpoint: TokenEndpoint? = nil, tls: TLSClientContext
  ) throws(CredentialError) {
    if tokenEndpoint == nil, endpoint.host == "fcm.googleapis.com", let host = TokenEndpoint(account.tokenURI)?.endpoint.host,
      !host.lowercased().hasSuffix(".googleapis.com")
    {
      throw CredentialError(file: nil, reason: "its token_uri is at \(host), which is not Google's")
    }
    try self.init(
      account: account, target: DialTarget(host: endpoint.host, port: endpoint.port, tls: tls), tokenEndpoint: tokenEndpoint,
      tls: tls)
  }

  package init(
    account: ServiceAccount, target: DialTarget, tokenEndpoint: TokenEndpoint?, tls: TLSClientContext?
  ) throws(CredentialError) {
    guard let token = tokenEndpoint ?? TokenEndpoint(account.tokenURI) else {
      throw CredentialError(file: nil, reason: "token_uri is not an https URL")
    }
    self.account = account
    self.target = target
    tokenTarget = DialTarget(host: token.endpoint.host, port: token.endpoint.port, tls: tls)
    tokenPath = token.path
  }
}
