import Foundation
import PushCore

/// A service account as Google's console downloads it, which senders' libraries are given.
struct ServiceAccountFile {
  var project: [UInt8]
  var keyID: [UInt8]
  /// PKCS#8 PEM.
  var privateKey: [UInt8]
  var email: [UInt8]
  var tokenURI: [UInt8]

  var json: [UInt8] {
    var account = JSONObjectWriter()
    account.set("type", "service_account")
    account.set("project_id", project)
    account.set("private_key_id", keyID)
    account.set("private_key", privateKey)
    account.set("client_email", email)
    account.set("client_id", keyID)
    account.set("token_uri", tokenURI)
    return account.closed()
  }
}
