import Foundation
import Providers
import TestSupport

/// The keys of this run as the pools take them.
enum TestKeys {
  static let p256 = read(\.p8)
  static let otherP256 = read(\.otherP8)
  static let rsa = read(\.rsaKey)

  static func tokenCredential(_ pem: [UInt8] = p256) throws -> TokenCredential {
    try TokenCredential(pem: pem, keyID: "ABC123DEFG", teamID: "DEF123GHIJ")
  }

  static func serviceAccountFile(tokenURI: String = "https://oauth.test/token", key: [UInt8] = rsa) -> [UInt8] {
    let fields = [
      "type": "service_account", "project_id": "example-project", "private_key_id": "0123abcd",
      "private_key": String(decoding: key, as: UTF8.self), "client_email": "sender@example-project.iam.gserviceaccount.com",
      "token_uri": tokenURI,
    ]
    return Array(try! JSONSerialization.data(withJSONObject: fields))
  }

  private static func read(_ path: KeyPath<TestCertificates, String>) -> [UInt8] {
    Array(FileManager.default.contents(atPath: try! TestCertificates.make()[keyPath: path])!)
  }
}
