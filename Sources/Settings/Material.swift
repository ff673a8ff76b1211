import Foundation
import Reactor

/// A key, certificate, CA or service account: a file, or the text itself. Its description never contains the text.
public enum Material: Sendable, Hashable {
  /// An absolute path.
  case file(String)
  case text(String)

  /// The placeholder of a missing material: a file that doesn't exist.
  static let missing = Material.file("")

  /// PEM and JSON are text; so is whatever has several lines. Anything else is a path.
  init(_ setting: String, in source: ConfigurationSource) {
    let value = setting.trimmingCharacters(in: .whitespacesAndNewlines)
    // Variables often contain line breaks as two characters.
    self =
      !Self.isText(value)
      ? .file(source.absolute(value))
      : .text(value.contains(where: \.isNewline) || value.hasPrefix("{") ? value : value.replacing("\\n", with: "\n"))
  }

  /// The beginning of a secret of Standard Webhooks.
  static let webhookSecret = "whsec_"

  static func isText(_ value: String) -> Bool {
    value.contains("-----BEGIN") || value.hasPrefix(webhookSecret) || value.hasPrefix("{") || value.contains(where: \.isNewline)
  }

  var path: String? { if case .file(let path) = self { path } else { nil } }

  /// - Parameter key: the setting, for errors.
  package func bytes(for key: String) throws(ConfigurationError) -> [UInt8] {
    switch self {
    case .file(let path): try FileText.read(path, for: key)
    case .text(let text): Array(text.utf8)
    }
  }
}

extension Material: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { path.map(SafeText.path) ?? "the text given" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Decides what messages may show of a setting's value or a command's word, which may be a misplaced secret.
public enum SafeText {
  /// The path, unless it looks like a key, a password or an address with a password.
  public static func path(_ text: String) -> String {
    isHarmless(text) ? text : "(not shown: it looks like a secret, not like a path)"
  }

  /// A key or name in a setting's path, unless it may be part of an encoded secret: it has a character that names don't have,
  /// or a long word of capitals, small letters and digits.
  public static func key(_ text: String) -> String {
    // Too short to be a useful part of a secret.
    if text.utf8.count < 8, isHarmless(text) { return text }
    let isName =
      isHarmless(text) && text.utf8.count <= 200
      && text.utf8.split(whereSeparator: isPunctuation).allSatisfy { isWord($0) }
    return isName ? text : "(not shown)"
  }

  private static func isPunctuation(_ byte: UInt8) -> Bool { ".-_[]".utf8.contains(byte) }

  private static func isWord(_ word: Substring.UTF8View.SubSequence) -> Bool {
    var kinds: Set<Int> = []
    for byte in word {
      switch byte {
      case 0x30...0x39: kinds.insert(0)
      case 0x41...0x5A: kinds.insert(1)
      case 0x61...0x7A: kinds.insert(2)
      default: return false
      }
    }
    return word.count <= 12 || kinds.count < 3
  }

  /// A name or short value in quotes; otherwise its length.
  public static func value(_ text: String) -> String {
    isHarmless(text) && text.utf8.count <= 64 ? "\"\(text)\"" : "a value of \(text.count) characters"
  }

  private static func isHarmless(_ text: String) -> Bool {
    guard text.utf8.count <= 1_024, !text.contains("-----BEGIN"), !text.contains("{"), !text.contains("://"),
      text.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F })
    else { return false }
    // Base64 has longer runs than the words of a path.
    var run = 0
    for byte in text.utf8 {
      let isEncoding =
        (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte & 0xDF) || byte == UInt8(ascii: "+")
        || byte == UInt8(ascii: "=")
      run = isEncoding ? run + 1 : 0
      if run > 32 { return false }
    }
    return text.split(separator: "/").allSatisfy { $0.utf8.count <= 100 }
  }
}

enum FileText {
  /// - Throws: an error that says whether the file is missing or unreadable.
  static func read(_ path: String, for key: String) throws(ConfigurationError) -> [UInt8] {
    do throws(SystemError) { return try FileContents.read(path) } catch {
      throw ConfigurationError(key: key, problem: problem(path, error))
    }
  }

  /// A file's content as a value, without the final line break; nil if it isn't UTF-8.
  static func value(_ bytes: [UInt8]) -> String? {
    String(validating: bytes, as: UTF8.self)?.trimmingCharacters(in: .newlines)
  }

  static func notText(_ path: String) -> String { "names a file that is not UTF-8 text: \(SafeText.path(path))" }

  static func problem(_ path: String, _ error: SystemError) -> String {
    "names a file that cannot be read: \(SafeText.path(path)) (\(error.reason))"
  }
}
