import PushCore

/// The checks of Google's servers. A bad JSON request gets status 400 and one line of text in Google's words, which senders
/// know.
struct GCMCheck {
  let document: JSONDocument
  /// True if the body came by `/gcm/send`.
  let isGCM: Bool

  /// Most targets of a request.
  private static let most = 1_000

  /// The line for a body that isn't JSON.
  static func line(_ error: JSONError, _ body: [UInt8]) -> String {
    guard error.offset < body.count else {
      return "JSON_PARSING_ERROR: Unexpected token END OF FILE at position \(body.count)."
    }
    return "JSON_PARSING_ERROR: Unexpected character (\(shown(body[error.offset]))) at position \(error.offset)."
  }

  private static func shown(_ byte: UInt8) -> String {
    byte >= 0x20 && byte < 0x7F ? String(UnicodeScalar(byte)) : "\\x" + String(byte, radix: 16)
  }

  /// The line for the first fault; nil if there is none.
  var line: String? {
    guard document.kind(document.root) == .object else {
      let start = document.offset(document.root)
      return "JSON_PARSING_ERROR: Unexpected character (\(Self.shown(document.bytes[start]))) at position \(start)."
    }
    return types ?? target ?? data ?? lifetime
  }

  private func text(_ node: Int) -> String {
    let source = document.source(node)
    let text = String(decoding: document.bytes[source].prefix(64), as: UTF8.self)
    return source.count > 64 ? text + "…" : text
  }

  private var types: String? {
    for name in ["to", "condition", "collapse_key", "restricted_package_name", "notification_key", "priority"] {
      guard let node = document.given(name), document.kind(node) != .string else { continue }
      return "Field \"\(name)\" must be a JSON string: \(text(node))"
    }
    if let node = document.given("registration_ids") {
      guard document.kind(node) == .array else { return "\"registration_ids\" field is not a JSON array" }
      for element in document.elements(of: node) where document.kind(element) != .string {
        return "Field \"registration_ids\" must be a JSON array of strings: \(text(element))"
      }
    }
    for name in ["data", "notification"] {
      guard let node = document.given(name), document.kind(node) != .object else { continue }
      return "Field \"\(name)\" must be a JSON array: \(text(node))"
    }
    for name in ["dry_run", "delay_while_idle", "content_available", "mutable_content"] {
      guard let node = document.given(name) else { continue }
      switch document.kind(node) {
      case .array, .object: return "Field \"\(name)\" must be a JSON boolean: \(text(node))"
      default: continue
      }
    }
    return nil
  }

  private var target: String? {
    let list = document.given("registration_ids")
    let one = document.given("to") ?? document.given("notification_key")
    if list != nil, one != nil { return "Must use either \"registration_ids\" field or \"to\", not both" }
    guard let list else {
      guard one == nil, document.given("condition") == nil else { return nil }
      return isGCM ? "Missing \"registration_ids\" field" : "to"
    }
    let count = document.count(list)
    if count == 0 { return "\"registration_ids\" field cannot be empty" }
    guard count > Self.most else { return nil }
    return "Number of messages on bulk (\(count)) exceeds maximum allowed (\(Self.most))"
  }

  private var data: String? {
    guard let node = document.given("data") else { return nil }
    for (name, _) in document.members(of: node) {
      let key = document.text(name)
      if key == "from" || key == "message_type" || key.hasPrefix("google") || key.hasPrefix("gcm") {
        return "\"data\" key \"\(key.prefix(64))\" is a reserved keyword"
      }
    }
    return nil
  }

  /// Accepts a number in quotes, because Google's example has one.
  private var lifetime: String? {
    guard let node = document.given("time_to_live") else { return nil }
    let seconds = document.kind(node) == .string ? Int64(document.text(node)) : document.integer(node)
    if let seconds, (0...2_419_200).contains(seconds) { return nil }
    return "Invalid value (\(text(node))) for \"time_to_live\": must be between 0 and 2419200"
  }
}
