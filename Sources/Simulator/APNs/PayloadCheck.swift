import PushCore

/// Finds mistakes in a payload. APNs passes most of them to the device, which then shows nothing. So they are violations in the
/// journal, not error answers (Apple, "Generating a remote notification").
struct PayloadCheck {
  let document: JSONDocument
  let pushType: [UInt8]
  private(set) var violations: [String] = []

  struct Rule {
    let kinds: Set<JSONKind>
    var words: Set<String>?
  }

  static let aps: [String: Rule] = [
    "alert": Rule(kinds: [.object, .string]), "badge": Rule(kinds: [.number]), "sound": Rule(kinds: [.string, .object]),
    "thread-id": Rule(kinds: [.string]), "category": Rule(kinds: [.string]), "content-available": Rule(kinds: [.number]),
    "mutable-content": Rule(kinds: [.number]), "target-content-id": Rule(kinds: [.string]),
    "interruption-level": Rule(kinds: [.string], words: ["passive", "active", "time-sensitive", "critical"]),
    "relevance-score": Rule(kinds: [.number]), "filter-criteria": Rule(kinds: [.string]), "timestamp": Rule(kinds: [.number]),
    "event": Rule(kinds: [.string], words: ["start", "update", "end"]), "content-state": Rule(kinds: [.object]),
    "stale-date": Rule(kinds: [.number]), "dismissal-date": Rule(kinds: [.number]), "attributes-type": Rule(kinds: [.string]),
    "attributes": Rule(kinds: [.object]), "input-push-channel": Rule(kinds: [.string]),
    "input-push-token": Rule(kinds: [.number]),
    "content-changed": Rule(kinds: [.true, .false]), "url-args": Rule(kinds: [.array]),
  ]

  static let alert: [String: Rule] = [
    "title": Rule(kinds: [.string, .object]), "subtitle": Rule(kinds: [.string]), "body": Rule(kinds: [.string, .object]),
    "launch-image": Rule(kinds: [.string]), "title-loc-key": Rule(kinds: [.string]), "title-loc-args": Rule(kinds: [.array]),
    "subtitle-loc-key": Rule(kinds: [.string]), "subtitle-loc-args": Rule(kinds: [.array]), "loc-key": Rule(kinds: [.string]),
    "loc-args": Rule(kinds: [.array]), "sound": Rule(kinds: [.string, .object]),
  ]

  static let sound: [String: Rule] = [
    "critical": Rule(kinds: [.number]), "name": Rule(kinds: [.string]), "volume": Rule(kinds: [.number]),
  ]

  mutating func run() {
    guard let aps = document.value("aps", of: document.root) else {
      if pushType != Array("mdm".utf8) { violations.append("the payload has no aps") }
      return
    }
    guard document.kind(aps) == .object else { return violations.append("aps is \(document.kind(aps).words), not an object") }
    check(aps, Self.aps, "aps")
    if let alert = document.value("alert", of: aps), document.kind(alert) == .object {
      check(alert, Self.alert, "aps.alert")
      for (name, value) in document.members(of: alert) where document.kind(value) == .array {
        for element in document.elements(of: value) where document.kind(element) != .string {
          violations.append("aps.alert.\(document.text(name)) holds \(document.kind(element).words), not only strings")
        }
      }
    }
    if let sound = document.value("sound", of: aps), document.kind(sound) == .object { check(sound, Self.sound, "aps.sound") }
    if document.value("mutable-content", of: aps) != nil, document.value("alert", of: aps) == nil {
      violations.append("mutable-content without an alert reaches no service extension")
    }
    if pushType == Array("background".utf8) { checkBackground(aps) }
  }

  /// A background push has `content-available` and nothing else (Apple, "Pushing background updates to your app").
  private mutating func checkBackground(_ aps: Int) {
    for (name, _) in document.members(of: aps) where !document.isString(name, "content-available") {
      violations.append("a background push has aps.\(document.text(name))")
    }
    if document.value("content-available", of: aps) == nil { violations.append("a background push has no content-available") }
  }

  private mutating func check(_ object: Int, _ rules: [String: Rule], _ place: String) {
    for (name, value) in document.members(of: object) {
      let key = document.text(name)
      guard let rule = rules[key] else {
        violations.append("\(place).\(key) is unknown: custom keys stand beside aps")
        continue
      }
      if !rule.kinds.contains(document.kind(value)) {
        violations.append("\(place).\(key) is \(document.kind(value).words)")
      } else if let words = rule.words, !words.contains(document.text(value)) {
        violations.append("\(place).\(key) has a value that Apple doesn't list")
      }
    }
  }
}
