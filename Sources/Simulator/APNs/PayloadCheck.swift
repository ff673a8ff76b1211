import PushCore

/// Finds mistakes in a payload. APNs passes most of them to the device, which then shows nothing. So they are violations in the
/// journal, not error answers (Apple, "Generating a remote notification").
struct PayloadCheck {
  let document: JSONDocument
  let pushType: [UInt8]
  private(set) var violations: [String] = []

  static let aps: [String: Set<JSONKind>] = [
    "alert": [.object, .string], "badge": [.number], "sound": [.string, .object], "thread-id": [.string],
    "category": [.string], "content-available": [.number], "mutable-content": [.number], "target-content-id": [.string],
    "interruption-level": [.string], "relevance-score": [.number], "filter-criteria": [.string], "timestamp": [.number],
    "event": [.string], "content-state": [.object], "stale-date": [.number], "dismissal-date": [.number],
    "attributes-type": [.string], "attributes": [.object], "input-push-channel": [.string], "input-push-token": [.number],
    "content-changed": [.true, .false], "url-args": [.array],
  ]

  static let alert: [String: Set<JSONKind>] = [
    "title": [.string, .object], "subtitle": [.string], "body": [.string, .object], "launch-image": [.string],
    "title-loc-key": [.string], "title-loc-args": [.array], "subtitle-loc-key": [.string], "subtitle-loc-args": [.array],
    "loc-key": [.string], "loc-args": [.array], "sound": [.string, .object],
  ]

  static let sound: [String: Set<JSONKind>] = ["critical": [.number], "name": [.string], "volume": [.number]]

  /// The allowed values of a place, if Apple lists them.
  static let words: [String: Set<String>] = [
    "aps.interruption-level": ["passive", "active", "time-sensitive", "critical"], "aps.event": ["start", "update", "end"],
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

  private mutating func check(_ object: Int, _ rules: [String: Set<JSONKind>], _ place: String) {
    for (name, value) in document.members(of: object) {
      let key = document.text(name)
      guard let kinds = rules[key] else {
        violations.append("\(place).\(key) is unknown: custom keys stand beside aps")
        continue
      }
      if !kinds.contains(document.kind(value)) {
        violations.append("\(place).\(key) is \(document.kind(value).words)")
      } else if let words = Self.words["\(place).\(key)"], !words.contains(document.text(value)) {
        violations.append("\(place).\(key) has a value that Apple doesn't list")
      }
    }
  }
}
