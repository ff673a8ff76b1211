import PushCore
import Reactor
import TLS

/// The key file of a Google service account. Immutable; can be shared between threads. Descriptions name the project only.
public final class ServiceAccount: CustomStringConvertible, Sendable {
  public let project: String
  let clientEmail: String
  /// `private_key_id`, for the header `kid`.
  let keyID: String?
  /// `token_uri`: the claim `aud`, and the default token endpoint.
  public let tokenURI: String
  let key: SigningKey

  /// - Parameter file: the JSON text of the key file.
  public init(file: [UInt8]) throws(CredentialError) {
    func invalid(_ reason: String) -> CredentialError { CredentialError(file: nil, reason: reason) }
    let document: JSONDocument
    do { document = try JSONDocument(file) } catch {
      throw invalid("the service account is not JSON: \(error.reason) at byte \(error.offset)")
    }
    func text(_ field: String) throws(CredentialError) -> String {
      guard let node = document.value(field, of: document.root), document.kind(node) == .string,
        document.count(node) == 0, !document.text(node).isEmpty
      else { throw invalid("the service account has no \(field)") }
      return document.text(node)
    }
    if let type = try? text("type"), type != "service_account" {
      let word = type.utf8.count <= 32 && type.utf8.allSatisfy { $0 == 0x5F || 0x61...0x7A ~= $0 } ? type : "another"
      throw invalid("it is of type \"\(word)\", not \"service_account\": download a key of a service account")
    }
    project = try text("project_id")
    clientEmail = try text("client_email")
    keyID = try? text("private_key_id")
    tokenURI = (try? text("token_uri")) ?? "https://oauth2.googleapis.com/token"
    let pem = try text("private_key")
    do { key = try SigningKey(pem: Array(pem.utf8)) } catch {
      throw invalid("the private key in the service account can't be read: \(error)")
    }
    if key.algorithm != .rs256 { throw invalid("the private key in the service account is not an RSA key") }
  }

  public var description: String { "the service account of project \(project)" }

  static let scope = "https://www.googleapis.com/auth/firebase.messaging"

  /// The form that requests an access token (RFC 7523 §2.1).
  /// - Parameter wallClock: Unix milliseconds.
  func tokenRequest(wallClock: Int64) throws -> [UInt8] {
    let issuedAt = wallClock / 1000
    let claims: JSONObject = [
      "iss": clientEmail, "scope": Self.scope, "aud": tokenURI, "iat": issuedAt, "exp": issuedAt + 3600,
    ]
    let assertion = try JSONWebToken.make(
      header: ["alg": "RS256", "typ": "JWT", "kid": JSONOptional(keyID)], claims: claims, sign: key.signRS256)
    return Array("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=".utf8) + assertion
  }
}

public struct TokenEndpoint: Equatable, Sendable {
  public var endpoint: Endpoint
  public var path: String

  /// Nil unless the URL is `https://host[:port][/path]`.
  public init?(_ url: String) {
    guard url.hasPrefix("https://") else { return nil }
    let rest = url.dropFirst(8)
    let slash = rest.firstIndex(of: "/") ?? rest.endIndex
    guard let endpoint = try? Endpoint(parsing: String(rest[..<slash]), defaultPort: 443),
      rest[slash...].utf8.allSatisfy({ 0x21...0x7E ~= $0 })
    else { return nil }
    self.endpoint = endpoint
    path = slash == rest.endIndex ? "/" : String(rest[slash...])
  }
}
