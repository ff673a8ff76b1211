import Foundation
import Providers

/// Keys made for this run by OpenSSL's command, so that none lies in the repository.
enum TestKeys {
  static let p256 = generate(["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"])
  static let otherP256 = generate(["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"])
  static let rsa = generate(["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"])

  static func tokenCredential(_ pem: [UInt8] = p256, refreshAge: Double = 50 * 60) throws -> TokenCredential {
    try TokenCredential(pem: pem, keyID: "ABC123DEFG", teamID: "DEF123GHIJ", refreshAge: refreshAge)
  }

  static func serviceAccountFile(tokenURI: String = "https://oauth.test/token") -> [UInt8] {
    let fields = [
      "type": "service_account", "project_id": "example-project", "private_key_id": "0123abcd",
      "private_key": String(decoding: rsa, as: UTF8.self), "client_email": "sender@example-project.iam.gserviceaccount.com",
      "token_uri": tokenURI,
    ]
    return Array(try! JSONSerialization.data(withJSONObject: fields))
  }

  private static func generate(_ options: [String]) -> [UInt8] {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
    process.arguments = ["genpkey"] + options
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try! process.run()
    let bytes = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return Array(bytes)
  }
}
