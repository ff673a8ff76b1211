import Broker
import DeviceRegistry
import Foundation
import Gateway
import PushCore

/// The names by which a trace refers to a request or a device.
struct TraceSubject {
  /// A line concerns the subject if one of its values is among these.
  private let names: Set<String>
  /// The quoted names, to search a message before its lines are parsed.
  private let words: [[UInt8]]
  private let app: String?
  private let campaign: String?

  init(_ question: TraceOrder, _ history: DeviceHistory?) {
    var names: Set = [question.text]
    let text = Array(question.text.utf8)
    func add(_ target: Target, app: [UInt8] = []) {
      if let name = RequestTraceName.of(target, app: app) { names.insert(String(decoding: name, as: UTF8.self)) }
    }
    if case .token(.webpush, let token)? = DeviceReference(text: text) {
      add(.webpush(token: token[...]))
    } else if case .success(let target) = Target.classify(text) {
      add(target)
    }
    for device in history?.devices ?? [] {
      let token = device.device.token
      add(device.device.platform == .webpush ? .webpush(token: token[...]) : .fcm(token: token[...]))
      add(.registration(device.registration))
      if let user = device.device.user { add(.user(user), app: device.device.app) }
    }
    self.names = names
    app = question.app
    campaign = question.campaign == nil ? nil : history?.campaign?.id ?? ""
    words = names.map { name in
      var quoted: [UInt8] = []
      quoted.appendSafeJSONString(name)
      return quoted
    }
  }

  func isNamed(in body: some Collection<UInt8>) -> Bool {
    let body = Array(body)
    return words.contains { body.has($0) }
  }

  /// The part of the round that concerns the subject; nil if there is none.
  func part(of round: TraceRound) -> TraceRound? {
    if let app, round.text("app") != app { return nil }
    if let campaign, round.text("campaign") != campaign { return nil }
    if let id = round.fields["message_id"] as? String, names.contains(id) { return round }
    let own = round.pushes.filter { push in
      ["apns_id", "provider_name", "token_name", "registration_name"].contains { key in
        (push[key] as? String).map(names.contains) == true
      }
    }
    guard own.isEmpty else { return round.narrowed(to: own) }
    return (round.fields["target_names"] as? [String] ?? []).contains(where: names.contains) ? round : nil
  }
}

struct TraceRound {
  private(set) var line: [UInt8]
  private(set) var fields: [String: Any]
  /// Number of the round's other devices, which are left out.
  private(set) var others = 0

  init?(_ line: [UInt8]) {
    guard let object = try? JSONSerialization.jsonObject(with: Data(line)) as? [String: Any] else { return nil }
    self.line = line
    fields = object
  }

  func text(_ name: String) -> String { (fields[name] as? String ?? "").printable }
  func number(_ name: String) -> Int? { (fields[name] as? NSNumber)?.intValue }
  var pushes: [[String: Any]] { fields["pushes"] as? [[String: Any]] ?? [] }

  func narrowed(to own: [[String: Any]]) -> TraceRound {
    let devices = Set(own.compactMap { $0["token_name"] as? String }).count
    var round = self
    round.others = max(max(number("devices") ?? 0, 0) - max(devices, 1), 0)
    guard own.count < pushes.count else { return round }
    round.fields["pushes"] = own
    let options: JSONSerialization.WritingOptions = [.sortedKeys, .withoutEscapingSlashes]
    if let data = try? JSONSerialization.data(withJSONObject: round.fields, options: options) { round.line = Array(data) }
    return round
  }
}

extension [UInt8] {
  /// Substring search after Horspool, because bodies are many and large.
  fileprivate func has(_ word: [UInt8]) -> Bool {
    guard !word.isEmpty, count >= word.count else { return word.isEmpty }
    var skips = [Int](repeating: word.count, count: 256)
    for (place, byte) in word.dropLast().enumerated() { skips[Int(byte)] = word.count - 1 - place }
    var end = word.count - 1
    while end < count {
      var place = word.count - 1
      while place >= 0, self[end - (word.count - 1 - place)] == word[place] { place -= 1 }
      if place < 0 { return true }
      end += skips[Int(self[end])]
    }
    return false
  }
}
