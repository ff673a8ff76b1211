import AMQP
import Foundation
import PushCore
import Reactor
import Worker

enum TraceCommand: Command {
  static let name = "trace"
  static let summary = "tell what became of a request"
  static let help = """
    Usage: pushfleet trace ID --config FILE [--json]

    Tells what became of a request, round by round: when it was received, from which queue and how old; its devices; each push
    with its connection, answer and round trip; what it waits for; how it ended. ID is a message id, the apns-id of a push, a
    provider's token or a registration: of a token, all its requests are shown.

    Workers note each request as it is acknowledged, for as long as trace.keep says (a day), whether they still run or not. What
    is still unread in a queue, or in a worker's hand, is not noted yet. Exit status 65 when nothing is known of the ID.

      --config FILE   the configuration (or PUSHFLEET_CONFIG)
      --json          print one JSON object per round

    Example: pushfleet trace 7f1c0c1e-52f7-4d7e-9a43-0d1f6a0a3b55 --config pushfleet.json5
    """

  static func run(_ arguments: inout [String]) throws {
    let options = try Options(arguments, values: ["config"], flags: ["json"])
    guard let id = options.operands.first, options.operands.count == 1, !id.isEmpty else {
      throw CommandFailure(.usage, "one ID is needed: a message id, an apns-id, a token or a registration")
    }
    let configuration = try options.configuration()
    let reader = try TraceReader(configuration, subject: TraceSubject(id))
    try reader.run()
    let rounds = reader.rounds
    guard !rounds.isEmpty else { throw CommandFailure(.badInput, unknown(id, configuration, leftOut: reader.leftOut)) }
    for round in rounds where options.has("json") { Terminal.print(round.line) }
    if !options.has("json") {
      let text = TraceText(prefix: configuration.prefix, width: TerminalWidth.ofOutput ?? .max)
      Terminal.print(text.text(of: rounds))
    }
  }

  private static func unknown(_ id: String, _ configuration: Configuration, leftOut: Int) -> String {
    let kept =
      configuration.trace == nil ? "trace.keep is \"none\"" : "it is still to be received, or ended longer ago than is kept"
    let omitted = leftOut > 0 ? ", or is one of \(leftOut) that trace.perSecond left out" : ""
    return "nothing is known of \(Shown.value(id)): \(kept)\(omitted)"
  }
}

/// One round of a request, as a worker noted it.
struct TraceRound {
  let line: [UInt8]
  let fields: [String: Any]

  init?(_ line: [UInt8]) {
    guard let object = try? JSONSerialization.jsonObject(with: Data(line)) as? [String: Any] else { return nil }
    self.line = line
    fields = object
  }

  func text(_ name: String) -> String { (fields[name] as? String ?? "").printable }
  func number(_ name: String) -> Int? { (fields[name] as? NSNumber)?.intValue }
  var pushes: [[String: Any]] { fields["pushes"] as? [[String: Any]] ?? [] }
}

/// Whom or what is asked for.
struct TraceSubject {
  /// Texts of which one stands in every line that concerns it.
  private let words: [[UInt8]]

  init(_ id: String) {
    let text = Array(id.utf8)
    var words = [text]
    if case .success(let target) = Target.classify(text) {
      switch target {
      case .apns(let token), .fcm(let token), .fcmTopics(let token), .channel(let token), .registration(let token):
        words.append(RequestTraceName.of(token))
      case .topic, .all, .user, .group, .invalid: break
      }
    }
    self.words = words.map { word in
      var quoted: [UInt8] = []
      quoted.appendSafeJSONString(word)
      return quoted
    }
  }

  func stands(in body: [UInt8]) -> Bool { words.contains { body.has($0) } }

  /// By its fields: what a word stands in may be another's reason.
  func concerns(_ round: TraceRound) -> Bool {
    let named = ["message_id"].compactMap { round.fields[$0] as? String }
    let pushes = round.pushes.flatMap { push in
      ["apns_id", "provider_name", "token_name", "registration_name"].compactMap { push[$0] as? String }
    }
    return (named + pushes).contains { text in
      var quoted: [UInt8] = []
      quoted.appendSafeJSONString(text)
      return words.contains(quoted)
    }
  }
}

extension [UInt8] {
  /// Whether `word` stands in it: Horspool's search, for bodies are many and large.
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
