import Foundation
import Testing

/// What nothing may say, whatever a test does to it: the output of each command that a test runs and each page of figures that it reads
/// are searched for it.
public enum SpokenSecrets {
  private static let deviceToken = "a device token"
  private static let gatewayKey = "a key of the gateway's"

  /// What commands are there to say: whose devices those are, and a key when it is made.
  private static func spoken(by command: [String]) -> Set<String> {
    let ofProgram = command.firstIndex(of: Program.path).map { command[($0 + 1)...] } ?? command[...]
    // A shell's line names the command itself, and its operands are files.
    let isShells = ofProgram.first?.contains("/") == true
    let words = isShells ? command.flatMap { $0.split(separator: " ").map(String.init) } : ofProgram.prefix(2).map(\.self)
    func has(_ word: String) -> Bool { isShells ? words.contains(word) : words.first == word }
    if has("keys"), words.contains("create") { return [gatewayKey] }
    return ["feedback", "devices", "dead", "explain"].contains(where: has) ? [deviceToken] : []
  }

  /// Lines of the keys that tests sign with, the beginnings of the tokens made of them, a device's token, the gateway's keys, and the
  /// password of the broker's usual user.
  private static let secrets: [(what: String, bytes: [UInt8])] = {
    var found: [(what: String, bytes: [UInt8])] = [
      ("a provider token", Array("eyJhbGci".utf8)), ("an access token", Array("ya29.".utf8)),
      (deviceToken, Array(repeating: UInt8(ascii: "0"), count: 50)), (gatewayKey, Array("pf1k~".utf8)),
      ("what a device proves itself with", Array("pf1d~".utf8)), ("the broker's password", Array(":guest@".utf8)),
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

  /// What of it stands in a command's output, or in a page.
  /// - Parameter command: the command line, or the page's path.
  public static func found(in output: String, of command: [String]) -> [String] {
    let said = Data(output.utf8)
    let spoken = spoken(by: command)
    return secrets.filter { !spoken.contains($0.what) && said.range(of: Data($0.bytes)) != nil }.map(\.what)
  }

  public static func look(in output: String, of command: [String]) {
    for what in found(in: output, of: command) { Issue.record("\(command.joined(separator: " ")) has said \(what)") }
  }
}
