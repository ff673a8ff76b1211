import Foundation
import TestSupport

/// The broker's users as docs/operate/permissions.md makes them.
extension Site {
  /// Makes those users, with the site's prefix in place of the fleet's, and returns their addresses by name.
  ///
  /// - Parameter others: further users, by name, and whose permissions they have.
  func makeUsers(_ others: [String: String] = [:]) throws -> [String: String] {
    let commands = try Self.userCommands()
    var calls: [String] = []
    var addresses: [String: String] = [:]
    for (name, model) in Dictionary(uniqueKeysWithValues: Set(commands.map { $0[1] }).map { ($0, $0) }).merging(
      others, uniquingKeysWith: { $1 })
    {
      addresses[name] = broker.uri.replacing("guest:guest@", with: "\(user(name)):PASSWORD@")
      calls += try commands.filter { $0[1] == model }.map { try call($0, for: user(name)) }
    }
    try broker.evaluate("A = rabbit_auth_backend_internal, \(calls.joined(separator: ", ")).")
    return addresses
  }

  /// The name of a documented user at the shared broker.
  func user(_ name: String) -> String { "\(name)-\(prefix)" }

  /// The words of each `rabbitmqctl` line.
  private static func userCommands() throws -> [[String]] {
    let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
      "../../docs/operate/permissions.md")
    let text = try String(contentsOf: page, encoding: .utf8)
    guard let section = text.components(separatedBy: "\n## ").first(where: { $0.hasPrefix("Users of the broker\n") }) else {
      throw Broken("docs/operate/permissions.md has no section about users")
    }
    return section.split(separator: "\n").filter { $0.hasPrefix("    rabbitmqctl ") }.map { line in
      line.split(separator: " ").dropFirst().map { $0.trimmingCharacters(in: ["'"]) }
    }
  }

  /// Does the work of `rabbitmqctl` for a command.
  private func call(_ words: [String], for user: String) throws -> String {
    func binary(_ text: String) -> String {
      let own = text.replacing(#"push\."#, with: prefix + #"\."#).replacing("push.", with: prefix + ".")
      return Broker.binary(own)
    }
    let values = words.dropFirst(2).map(binary).joined(separator: ", ")
    switch (words[0], words.count) {
    case ("add_user", 3): return "ok = A:add_user(<<\"\(user)\">>, \(values), <<\"test\">>)"
    case ("set_permissions", 5): return "ok = A:set_permissions(<<\"\(user)\">>, <<\"/\">>, \(values), <<\"test\">>)"
    case ("set_topic_permissions", 5):
      return "ok = A:set_topic_permissions(<<\"\(user)\">>, <<\"/\">>, \(values), <<\"test\">>)"
    default: throw Broken("docs/operate/permissions.md: \(words)")
    }
  }
}
