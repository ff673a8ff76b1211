import Reactor
import TLS
import TestSupport
import Testing

@testable import Providers

@Suite("A service account")
struct ServiceAccountTests {
  @Test("is read from its key file, escapes in the key included")
  func reads() throws {
    let account = try ServiceAccount(file: TestKeys.serviceAccountFile())
    #expect(account.project == "example-project")
    #expect(account.tokenURI == "https://oauth.test/token")
    let form = String(decoding: try account.tokenRequest(wallClock: 1_800_000_000_000), as: UTF8.self)
    #expect(form.hasPrefix("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=eyJ"))
    #expect(form.split(separator: ".").count == 3)
  }

  @Test("a file of another kind is refused with what is wrong")
  func refuses() {
    let type = #"it is of type "authorized_user", not "service_account": download a key of a service account"#
    #expect(throws: CredentialError(file: nil, reason: type)) {
      try ServiceAccount(file: Array(#"{"type":"authorized_user"}"#.utf8))
    }
    #expect(throws: CredentialError(file: nil, reason: "the service account has no project_id")) {
      try ServiceAccount(file: Array(#"{"type":"service_account","client_email":"a"}"#.utf8))
    }
    #expect(throws: CredentialError(file: nil, reason: "the private key in the service account is not an RSA key")) {
      try ServiceAccount(file: TestKeys.serviceAccountFile(key: TestKeys.p256))
    }
    #expect(throws: CredentialError.self) { try ServiceAccount(file: Array("not json".utf8)) }
    #expect(throws: CredentialError.self) {
      try ServiceAccount(
        file: Array(#"{"type":"service_account","project_id":"p","client_email":"a","private_key":"x"}"#.utf8))
    }
  }

  @Test("a token endpoint is an https URL")
  func endpoints() {
    #expect(TokenEndpoint("https://oauth2.googleapis.com/token")?.path == "/token")
    #expect(TokenEndpoint("https://oauth2.googleapis.com/token")?.endpoint.port == 443)
    #expect(TokenEndpoint("https://127.0.0.1:8444")?.path == "/")
    #expect(TokenEndpoint("https://127.0.0.1:8444")?.endpoint.port == 8444)
    #expect(TokenEndpoint("http://oauth2.googleapis.com/token") == nil)
    #expect(TokenEndpoint("https://host/a\r\nb") == nil)
    #expect(TokenEndpoint("") == nil)
  }

  @Test("a key file may not send assertions elsewhere than to Google, unless another endpoint is configured for FCM as well")
  func foreignTokenEndpoint() throws {
    func credentials(_ uri: String, _ endpoint: Endpoint? = nil) throws {
      let account = try ServiceAccount(file: TestKeys.serviceAccountFile(tokenURI: uri))
      let tls = try TLSClientContext.provider(trust: TrustStore(file: TestCertificates.make().authority))
      if let endpoint {
        _ = try FCMCredentials(account: account, endpoint: endpoint, tls: tls)
      } else {
        _ = try FCMCredentials(account: account, tls: tls)
      }
    }
    try credentials("https://oauth2.googleapis.com/token")
    try credentials("https://token.test/token", Endpoint(host: "127.0.0.1", port: 8444))
    for uri in ["https://token.test/token", "https://googleapis.com.token.test/", "https://notgoogleapis.com/token"] {
      let error = #expect(throws: CredentialError.self) { try credentials(uri) }
      #expect(error?.description.contains("which is not Google's") == true)
    }
  }
}

@Suite("An answer of a token endpoint")
struct AccessTokenAnswerTests {
  private func read(_ status: Int, _ body: String) -> AccessTokenAnswer {
    AccessTokenAnswer(status: status, body: Array(body.utf8))
  }

  @Test("gives the token and its lifetime, however written")
  func tokens() {
    let token = Array("ya29.x".utf8)
    #expect(read(200, #"{"access_token":"ya29.x","expires_in":3599,"token_type":"Bearer"}"#) == .token(token, lifetime: 3599))
    #expect(read(200, #"{"access_token":"ya29.x","expires_in":"60"}"#) == .token(token, lifetime: 60))
    #expect(read(200, #"{"access_token":"ya29.x"}"#) == .token(token, lifetime: 3600))
    #expect(read(200, #"{"access_token":"ya29.x","expires_in":-5}"#) == .token(token, lifetime: 1))
  }

  @Test("a refusal is told apart from a failure")
  func refusals() {
    #expect(read(400, #"{"error":"invalid_grant","error_description":"Invalid JWT"}"#) == .refused("invalid_grant"))
    #expect(read(500, #"{"error":"internal_failure"}"#) == .failed("HTTP 500: internal_failure"))
    #expect(read(429, #"{"error":"rate"}"#) == .failed("HTTP 429: rate"))
    #expect(read(502, "<html><body>Bad Gateway</body></html>") == .failed("HTTP 502 without a JSON object"))
    #expect(read(200, "<html>captive portal</html>") == .failed("HTTP 200 without a JSON object"))
    #expect(read(200, #"{"access_token":"a\r\nb"}"#) == .failed("HTTP 200 without an access token"))
  }
}
