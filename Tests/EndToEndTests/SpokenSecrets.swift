import Foundation
import TestSupport
import Testing

/// What no worker and no gateway may say, whatever a test does to it: every test's is searched for it.
enum SpokenSecrets {
  /// Lines of the keys that tests sign with, the beginnings of the tokens made of them, a device's token, the gateway's keys.
  private static let secrets: [(what: String, bytes: [UInt8])] = {
    var found: [(what: String, bytes: [UInt8])] = [
      ("a provider token", Array("eyJhbGci".utf8)), ("an access token", Array("ya29.".utf8)),
      ("a device token", Array(repeating: UInt8(ascii: "0"), count: 50)), ("a key of the gateway's", Array("pf1k~".utf8)),
      ("what a device proves itself with", Array("pf1d~".utf8)),
    ]
    guard let certificates = try? TestCertificates.make() else { return found }
    for file in [certificates.p8, certificates.otherP8, certificates.rsaKey, certificates.serverKey, certificates.clientKey] {
      guard let text = try? String(contentsOfFile: file, encoding: .utf8) else { continue }
      // Its first line is the same in all keys of a kind.
      let body = text.split(separator: "\n").filter { !$0.hasPrefix("-") }.dropFirst()
      found += body.filter { $0.utf8.count >= 16 }.map { ("a part of \((file as NSString).lastPathComponent)", Array($0.utf8)) }
    }
    return found
  }()

  /// - Parameter words: of the command; what isn't a worker's or a gateway's is not looked at.
  static func look(in output: String, of words: [String]) {
    guard let command = words.first, ["worker", "gateway"].contains(command) else { return }
    let said = Data(output.utf8)
    for (what, bytes) in secrets where said.range(of: Data(bytes)) != nil {
      Issue.record("a \(command) has said \(what)")
    }
  }
}
