import Foundation
import TestSupport
import Testing

/// What a person pastes in the place of a file's name, or with an option that there isn't, may be a secret.
@Suite("Words that may be secrets")
struct SecretWordsTests {
  static let places: [[String]] = [
    ["simulate", "apns", "--certificate", "CERT", "--key", "SECRET"],
    ["simulate", "apns", "--certificate", "SECRET", "--key", "KEY"],
    ["simulate", "apns", "--certificate", "CERT", "--key", "KEY", "--provider-key", "SECRET"],
    ["simulate", "apns", "--certificate", "CERT", "--key", "KEY", "--client-ca", "SECRET"],
    ["simulate", "fcm", "--certificate", "CERT", "--key", "SECRET"],
    ["simulate", "fcm", "--certificate", "CERT", "--key", "KEY", "--provider-key", "SECRET"],
    ["simulate", "webpush", "--certificate", "CERT", "--key", "KEY", "--provider-key", "SECRET"],
    ["simulate", "webpush", "--certificate", "CERT", "--key", "KEY", "--subscriptions", "1", "/no/SECRET"],
    ["simulate", "apns", "--certificate", "CERT", "--key", "KEY", "--script", "SECRET"],
    ["simulate", "apns", "--certificate", "CERT", "--key", "KEY", "--journal", "/no/SECRET"],
    ["simulate", "apns", "--certificate", "CERT", "--key", "KEY", "--listen", "SECRET"],
    ["simulate", "SECRET"], ["worker", "SECRET"], ["worker", "--passphrase=SECRET"], ["worker", "--SECRET"],
    ["worker", "--config", "SECRET"], ["SECRET"], ["help", "SECRET"],
    ["send", "--config", "CONFIG", "SECRET"], ["send", "--config", "CONFIG", "--app", "SECRET", "-"],
    ["explain", "--app", "com.example.app", "SECRET"], ["explain", "--app", "SECRET", "-"], ["explain", "SECRET", "SECRET"],
    ["devices", "SECRET", "--config", "CONFIG"], ["devices", "import", "--config", "CONFIG", "SECRET"],
    ["groups", "SECRET", "--config", "CONFIG"], ["campaigns", "SECRET", "--config", "CONFIG"],
    ["campaigns", "pause", "SECRET", "--config", "CONFIG"], ["campaigns", "pause", "a", "SECRET", "--config", "CONFIG"],
    ["topics", "SECRET", "--config", "CONFIG"],
  ]

  @Test("are never repeated by a command, wherever they stand", arguments: places)
  func neverRepeated(_ place: [String]) throws {
    let site = try RegistrySite()
    let files = try TestCertificates.make()
    let key = try String(contentsOfFile: files.p8, encoding: .utf8)
    let body = key.split(separator: "\n").filter { !$0.hasPrefix("-") }.joined()
    let account = #"{"type":"service_account","private_key":"\#(body)"}"#
    // A key without "+" and "/" has no character that a host's name doesn't have.
    let word = body.filter { $0.isLetter || $0.isNumber }
    let given = [key, body, word, account, key.replacing("\n", with: "\\n"), "amqp://user:\(body.prefix(16))@host/"]
    for (number, secret) in given.enumerated() {
      let words = place.map {
        switch $0 {
        case "CERT": files.server
        case "KEY": files.serverKey
        case "CONFIG": site.configuration
        default: $0.replacing("SECRET", with: secret)
        }
      }
      let log = site.folder.appendingPathComponent("\(number).log").path
      let child = try ChildProcess(
        [Program.path] + words, environment: RegistrySite.environment, output: log, input: .nullDevice)
      let status = child.wait()
      let said = try String(contentsOfFile: log, encoding: .utf8)
      #expect(status != 0 && !said.isEmpty, "\(place): \(status)")
      let runs = (0...8).map { start in String(body.dropFirst(start).prefix(8)) }
      #expect(!runs.contains { said.contains($0) }, "\(place): \(said)")
    }
  }
}
