import Foundation
import Testing

/// Secrets that must never be printed. Searches the output of all commands that tests run, and the pages they read.
public enum SpokenSecrets {
  private static let deviceToken = "a device token"
  private static let gatewayKey = "a key of the gateway's"

  /// Secrets that a command may print: device tokens, or a key when it is created.
  private static func spoken(by command: [String]) -> Set<String> {
    let ofProgram = command.firstIndex(of: Program.path).map { command[($0 + 1)...] } ?? command[...]
    // In a shell's line, the command is one of the words and the operands are files.
    let isShells = ofProgram.first?.contains("/") == true
    let words = isShells ? command.flatMap { $0.split(separator: " ").map(String.init) } : ofProgram.prefix(2).map(\.self)
    func has(_ word: String) -> Bool { isShells ? words.contains(word) : words.first == word }
    if has("keys"), words.contains("create") { return [gatewayKey] }
    return ["feedback", "devices", "dead", "explain"].contains(where: has) ? [deviceToken] : []
  }

  /// Lines of the tests' signing keys, beginnings of tokens, a device token, gateway keys, and the broker's usual password.
  private static let secrets: [(what: String, bytes: [UInt8])] = {
    var found: [(what: String, bytes: [UInt8])] = [
      ("a provider token", Array("eyJhbGci".utf8)), ("an access token", Array("ya29.".utf8)),
      (deviceToken, Array(repeating: UInt8(ascii: "0"), count: 50)), (gatewayKey, Array("pf1k~".utf8)),
      ("what a device proves itself with", Array("pf1d~".utf8)), ("the broker's password", Array(":guest@".utf8)),
    ]
    guard let certificates = try? TestCertificates.make() else { return found }
    for file in [certificates.p8, certificates.otherP8, certificates.rsaKey, certificates.serverKey, certificates.clientKey] {
      guard let text = try? String(contentsOfFile: file, encoding: .utf8) else { continue }
      // The first line is the same for all keys of a kind.
      let body = text.split(separator: "\n").filter { !$0.hasPrefix("-") }.dropFirst()
      found += body.filter { $0.utf8.count >= 16 }.map { ("a part of \((file as NSString).lastPathComponent)", Array($0.utf8)) }
    }
    return found
  }()

  /// The secrets found in a command's output or in a page.
  /// - Parameter command: the command line, or the page's path.
  public static func found(in output: String, of command: [String]) -> [String] {
    let said = Array(output.utf8)
    let spoken = spoken(by: command)
    return said.withUnsafeBytes { said in
      secrets.filter { !spoken.contains($0.what) && said.place(of: $0.bytes) != nil }.map(\.what)
    }
  }

  public static func look(in output: String, of command: [String]) {
    for what in found(in: output, of: command) { Issue.record("\(command.joined(separator: " ")) has said \(what)") }
  }
}
