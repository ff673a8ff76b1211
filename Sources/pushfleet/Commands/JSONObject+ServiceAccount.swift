import PushCore

extension JSONObject {
  /// A service account file, as Google's console creates it for senders' libraries.
  /// - Parameter privateKey: PKCS#8 PEM.
  static func serviceAccount(
    project: any JSONMember, keyID: any JSONMember, privateKey: [UInt8], email: any JSONMember, tokenURI: any JSONMember
  ) -> JSONObject {
    [
      "type": "service_account", "project_id": project, "private_key_id": keyID, "private_key": privateKey,
      "client_email": email, "client_id": keyID, "token_uri": tokenURI,
    ]
  }
}
