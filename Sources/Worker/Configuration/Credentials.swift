import Foundation
import Providers
import Reactor

extension APNsConfiguration {
  /// Loads the key or certificate.
  func credentials(of app: String) throws(ConfigurationError) -> APNsCredentials {
    let path = "apps.\(app).apns"
    let endpoint = Endpoint(host: host, port: UInt16(port))
    switch credential {
    case .token(let key, let keyID, let teamID):
      let pem = try readFile(key, for: "\(path).key")
      do throws(CredentialError) {
        let token = try TokenCredential(pem: pem, keyID: keyID, teamID: teamID)
        return try APNsCredentials(token: token, endpoint: endpoint, ca: ca)
      } catch {
        throw ConfigurationError(key: "\(path).key", problem: "cannot be used: \(error)")
      }
    case .certificate(let file, let key, let passphrase):
      do throws(CredentialError) {
        let identity =
          file.hasSuffix(".p12") || file.hasSuffix(".pfx")
          ? try Identity.pkcs12(file, passphrase: passphrase ?? "")
          : try Identity.pem(file, key: key, passphrase: passphrase)
        return try APNsCredentials(certificate: identity, endpoint: endpoint, ca: ca)
      } catch {
        throw ConfigurationError(key: "\(path).certificate", problem: "cannot be used: \(error)")
      }
    }
  }
}

extension FCMConfiguration {
  /// Loads the service account. A configured endpoint serves access tokens as well, at the path of the account's `token_uri`.
  func credentials(of app: String) throws(ConfigurationError) -> FCMCredentials {
    let key = "apps.\(app).fcm.serviceAccount"
    let file = try readFile(serviceAccount, for: key)
    let account: ServiceAccount
    do throws(ServiceAccount.Invalid) { account = try ServiceAccount(file: file) } catch {
      throw ConfigurationError(key: key, problem: "cannot be used: \(error)")
    }
    let endpoint = Endpoint(host: host, port: UInt16(port))
    let tokenEndpoint =
      isEndpointGiven ? TokenEndpoint(endpoint: endpoint, path: TokenEndpoint(account.tokenURI)?.path ?? "/token") : nil
    do throws(CredentialError) {
      return try FCMCredentials(account: account, endpoint: endpoint, tokenEndpoint: tokenEndpoint, ca: ca)
    } catch {
      throw ConfigurationError(key: "apps.\(app).fcm", problem: "cannot be used: \(error)")
    }
  }
}

/// The bytes of a file that a setting names.
func readFile(_ path: String, for key: String) throws(ConfigurationError) -> [UInt8] {
  guard let data = FileManager.default.contents(atPath: path) else {
    throw ConfigurationError(key: key, problem: "names a file that cannot be read: \(path)")
  }
  return [UInt8](data)
}
