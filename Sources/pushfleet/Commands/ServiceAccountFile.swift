import Foundation
import PushCore

/// A service account file, as Google's console creates it for senders' libraries.
struct ServiceAccountFile {
  var project: [UInt8]
  var keyID: [UInt8]
  /// PKCS#8 PEM.
  var privateKey: [UInt8]
  var email: [UInt8]
  var tokenURI: [UInt8]

  var json: [UInt8] {
    let account: JSONObject = [
      "type": "service_account", "project_id": project, "private_key_id": keyID, "private_key": privateKey,
      "client_email": email, "client_id": keyID, "token_uri": tokenURI,
    ]
    return account.line
  }
}
