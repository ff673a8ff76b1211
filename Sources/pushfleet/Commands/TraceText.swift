import Foundation

/// A trace for people: a heading for each request, and below it what happened when.
struct TraceText {
  let prefix: String
  /// Of the terminal: longer lines are broken between words.
  var width = Int.max
  private static let indent = String(repeating: " ", count: 14)

  func text(of rounds: [TraceRound]) -> String {
    var texts: [String] = []
    var seen: Set<String> = []
    for round in rounds {
      let id = round.text("message_id")
      guard seen.insert(id).inserted else { continue }
      texts.append(request(rounds.filter { $0.text("message_id") == id }))
    }
    return texts.joined(separator: "\n\n")
  }

  private func request(_ rounds: [TraceRound]) -> String {
    guard let first = rounds.first, let last = rounds.last else { return "" }
    var lines = ["message \(first.text("message_id")), \(application(first)): \(last.text("outcome"))"]
    lines.append(String(first.text("received_at").prefix(10)) + ", UTC")
    if !first.text("published_at").isEmpty { lines.append(time(first.text("published_at")) + "published") }
    for round in rounds { lines += self.lines(of: round) }
    if last.text("outcome") == "waits" { lines.append(Self.indent + "it has not come back from there yet") }
    return (fitted(lines[0], margin: "  ", isHeading: true) + lines.dropFirst().flatMap { fitted($0, margin: Self.indent) })
      .joined(separator: "\n")
  }

  /// - Parameter margin: stands before what doesn't fit, and, but in a heading, holds the line's time.
  private func fitted(_ line: String, margin: String, isHeading: Bool = false) -> [String] {
    let start = isHeading ? "" : line.prefix(margin.count)
    let words = line.dropFirst(start.count).split(separator: " ", omittingEmptySubsequences: false)
    return WrappedText.lines(words, first: String(start), rest: margin, width: width)
  }

  private func application(_ round: TraceRound) -> String {
    round.text("app").isEmpty ? "no application that is known" : "application \(round.text("app"))"
  }

  private func lines(of round: TraceRound) -> [String] {
    var lines: [String] = []
    var received = "received from \(prefix).\(round.text("queue")) by \(round.text("worker"))"
    if let waited = round.number("waited_ms") { received += ", at most \(duration(waited)) after it was published" }
    if let attempt = round.number("attempt"), attempt > 1 { received += ", attempt \(attempt)" }
    if round.fields["redelivered"] as? Bool == true { received += ", delivered before" }
    lines.append(time(round.text("received_at")) + received)
    if !round.text("campaign").isEmpty {
      lines.append(Self.indent + "page \(round.number("page") ?? 0) of campaign \(round.text("campaign"))")
    }
    lines.append(Self.indent + devices(round))
    for push in round.pushes { lines += self.lines(of: push, in: round) }
    if let error = round.fields["error"] as? String {
      lines.append(Self.indent + "\(error.printable): \(round.text("reason"))")
    }
    if let outcomes = round.fields["outcomes"] as? [String: Any] {
      let counts = outcomes.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key.printable)" }
      lines.append(Self.indent + "of its devices: \(counts.joined(separator: ", "))")
    }
    lines.append(time(round.text("ended_at")) + end(of: round))
    return lines
  }

  private func devices(_ round: TraceRound) -> String {
    let count = round.number("devices") ?? 0
    let from = round.fields["registered"] as? Bool == true ? "found in the registry" : "named by the request"
    return count == 0 ? "no device yet" : "\(count) device\(count == 1 ? "" : "s"), \(from)"
  }

  private func lines(of push: [String: Any], in round: TraceRound) -> [String] {
    func text(_ name: String) -> String { (push[name] as? String ?? "").printable }
    func number(_ name: String) -> Int? { (push[name] as? NSNumber)?.intValue }
    var sent = "translated for \(text("platform") == "apns" ? "APNs" : "FCM") and sent"
    if !text("token").isEmpty { sent += " to \(text("token"))" }
    if !text("pool").isEmpty { sent += " by \(text("pool"))" }
    if let connection = number("connection") { sent += ", connection \(connection)" }
    var lines = [time(text("sent_at")) + sent]
    let error = text("error").isEmpty ? text("outcome") : "\(text("error")), \(text("reason"))"
    if let status = number("status") {
      lines.append(Self.indent + "answered \(status) after \(duration(number("round_trip_ms") ?? 0)): \(error)")
    } else if let silent = number("silent_ms") {
      lines.append(Self.indent + "no answer within \(duration(silent)), the device may have it: \(error)")
    } else if push["sent"] as? Bool == false {
      lines.append(Self.indent + "certainly not processed: \(text("reason"))")
    }
    if !text("apns_id").isEmpty { lines.append(Self.indent + "apns-id \(text("apns_id"))") }
    if !text("provider_name").isEmpty { lines.append(Self.indent + "the provider calls it \(text("provider_name"))") }
    return lines
  }

  private func end(of round: TraceRound) -> String {
    var parts: [String] = []
    if let letters = round.number("dead_letters") { parts.append("\(letters) in \(prefix).dead") }
    if let events = round.number("feedback") { parts.append("\(events) in \(prefix).feedback") }
    let consequences = parts.isEmpty ? "" : " (\(parts.joined(separator: ", ")))"
    let acknowledged =
      round.fields["acknowledged"] as? Bool == true ? "acknowledged" : "its channel was lost: the broker delivers it again"
    let place = round.text("waits_in")
    guard !place.isEmpty else { return "\(acknowledged): \(round.text("outcome"))\(consequences)" }
    let because = round.text("waits_because").isEmpty ? "" : ", because: \(round.text("waits_because"))"
    let due =
      round.text("due_at").isEmpty ? "" : ", not before \(time(round.text("due_at")).trimmingCharacters(in: .whitespaces))"
    return "\(acknowledged): went on to \(prefix).\(place)\(due)\(because)\(consequences)"
  }

  /// Of a time of RFC 3339, the time of day.
  private func time(_ text: String) -> String {
    String(text.dropFirst(11).dropLast()).padding(toLength: Self.indent.count, withPad: " ", startingAt: 0)
  }

  private func duration(_ milliseconds: Int) -> String {
    milliseconds < 10_000 ? "\(milliseconds) ms" : "\(milliseconds / 1000) s"
  }
}
