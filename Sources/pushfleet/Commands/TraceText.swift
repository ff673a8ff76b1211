import DeviceRegistry
import Foundation
import PushCore

/// A trace as text: a heading per request, then its events with their times.
struct TraceText {
  let prefix: String
  /// Columns of the terminal; lines wrap between words.
  var width = Int.max
  private static let indent = String(repeating: " ", count: 14)

  func text(of story: TraceStory, newestFirst: Bool = false) -> String {
    let parts = story.requests.map(text) + story.broadcasts.map(text)
    return (newestFirst ? parts.reversed() : parts).joined(separator: "\n\n")
  }

  private func text(of request: TraceStory.Request) -> String {
    guard let first = request.rounds.first, let last = request.rounds.last else { return "" }
    var lines = ["message \(first.text("message_id")), \(application(first.text("app"))): \(outcome(of: last))"]
    lines.append(String(first.text("received_at").prefix(10)) + ", UTC")
    if !first.text("published_at").isEmpty { lines.append(time(first.text("published_at")) + "published") }
    for round in request.rounds { lines += self.lines(of: round) }
    if last.text("outcome") == "waits" { lines += self.lines(of: request.deletions) }
    return joined(lines + self.lines(of: request.acknowledgements))
  }

  private func text(of broadcast: DeviceHistory.Broadcast) -> String {
    let campaign = broadcast.campaign
    let device = broadcast.device
    let begun = Figures.moment(campaign.createdAt)
    var lines = [
      "message \(String(printing: campaign.description.messageID)), \(application(String(printing: campaign.description.app))): "
        + outcome(of: broadcast)
    ]
    lines.append(String(begun.prefix(10)) + ", UTC")
    lines.append(time(begun) + "broadcast \(campaign.id) to \(String(printing: campaign.description.target)) began")
    lines.append(Self.indent + "to \(ends(of: device)), \(device.device.platform.label)")
    if let page = broadcast.page {
      let counts = "\(Figures.count(page.sent)) accepted, \(Figures.count(page.failed)) failed"
      lines.append(
        Self.indent + "its place is on \(Self.name(ofPage: Int(page.number)))"
          + (page.isDone ? ": \(counts)" : ", which is not done"))
    } else {
      lines.append(Self.indent + "the broadcast is \(campaign.state.name); it has not reached this device")
    }
    return joined(lines + self.lines(of: broadcast.acknowledgements))
  }

  private static func name(ofPage number: Int) -> String {
    let (chain, page) = (number >> 32, number & 0xFFFF_FFFF)
    return chain > 0 ? "page \(page) of chain \(chain)" : "page \(page)"
  }

  private func outcome(of broadcast: DeviceHistory.Broadcast) -> String {
    switch broadcast.outcome {
    case .accepted: "accepted by \(broadcast.device.device.platform.label)"
    case .unknown: "unknown: the device is in the audience now, but nothing shows that it was in it then"
    case .left(let state): "not sent: the device has been \(state.word) since before the broadcast"
    case .open: "waits: the broadcast is \(broadcast.campaign.state.name)"
    case .notSent: "not sent: the broadcast was \(broadcast.campaign.state.name) before"
    }
  }

  /// If a device was asked for, the outcome of the last push to it; otherwise the whole request's outcome.
  private func outcome(of round: TraceRound) -> String {
    let platforms = Set(round.pushes.compactMap { $0["platform"] as? String }.map(Self.label))
    let name = platforms.count == 1 ? platforms.first : nil
    guard round.others > 0 else { return words(round.text("outcome"), provider: name) }
    return words(round.pushes.last?["outcome"] as? String ?? "", provider: name)
  }

  /// - Parameter word: a platform as the trace names it.
  private static func label(_ word: String) -> String {
    Platform.allCases.first { $0.word == word }?.label ?? word
  }

  private func words(_ outcome: String, provider: String?) -> String {
    switch outcome {
    case "delivered": provider.map { "accepted by \($0)" } ?? "accepted"
    case "delivered in part": "accepted in part"
    default: outcome.printable
    }
  }

  private func lines(of deletions: [AuditEvent]?) -> [String] {
    let fate = deletions.map {
      $0.isEmpty ? "; no operator has deleted requests there" : "; a deletion may have included it"
    }
    return (deletions ?? []).reversed().map { event in
      time(Figures.moment(event.at)) + String(printing: event.action) + (event.change.isEmpty ? "" : ": \(event.change)")
    } + [Self.indent + "its return from there is not in the trace" + (fate ?? "; an operator may have deleted it")]
  }

  private func lines(of acknowledgements: [TraceStory.Acknowledgement]) -> [String] {
    acknowledgements.flatMap { acknowledgement in
      let device = "on \(ends(of: acknowledgement.device))"
      let received = acknowledgement.times.received.map { ($0, "received by the app \(device)") }
      let read = acknowledgement.times.read.map { ($0, "read by the user \(device)") }
      return [received, read].compactMap(\.self).map { moment, words in time(Figures.moment(moment)) + words }
    }
  }

  /// The ends of the token or the name of the subscription, as in the trace.
  private func ends(of device: DeviceRecord) -> String {
    guard device.device.platform != .webpush else { return device.device.shownToken }
    let token = device.device.token
    return token.count < 24
      ? String(printing: device.registration) : String(printing: token.prefix(4) + Array("…".utf8) + token.suffix(4))
  }

  private func joined(_ lines: [String]) -> String {
    (fitted(lines[0], margin: "  ", isHeading: true) + lines.dropFirst().flatMap { fitted($0, margin: Self.indent) })
      .joined(separator: "\n")
  }

  /// - Parameter margin: begins continuation lines; except in a heading, the first line has its time there.
  private func fitted(_ line: String, margin: String, isHeading: Bool = false) -> [String] {
    let start = isHeading ? "" : line.prefix(margin.count)
    let words = line.dropFirst(start.count).split(separator: " ", omittingEmptySubsequences: false)
    return WrappedText.lines(words, first: String(start), rest: margin, width: width)
  }

  private func application(_ name: String) -> String {
    name.isEmpty ? "unknown application" : "application \(name)"
  }

  private func lines(of round: TraceRound) -> [String] {
    var lines: [String] = []
    var received = "received from \(prefix).\(round.text("queue")) by \(round.text("worker"))"
    if let waited = round.number("waited_ms") { received += ", at most \(duration(waited)) after it was published" }
    if let attempt = round.number("attempt"), attempt > 1 { received += ", attempt \(attempt)" }
    if round.fields["redelivered"] as? Bool == true { received += ", a redelivery by the broker" }
    lines.append(time(round.text("received_at")) + received)
    if !round.text("campaign").isEmpty {
      lines.append(Self.indent + "\(Self.name(ofPage: round.number("page") ?? 0)) of campaign \(round.text("campaign"))")
    }
    lines.append(Self.indent + devices(round))
    for push in round.pushes { lines += self.lines(of: push, in: round) }
    if let error = round.fields["error"] as? String {
      lines.append(Self.indent + "\(error.printable): \(round.text("reason"))")
    }
    if let outcomes = round.fields["outcomes"] as? [String: Any] {
      let counts = outcomes.sorted { $0.key < $1.key }.map { code, count in
        "\(count) \(code == "delivered" ? "accepted" : code.printable)"
      }
      lines.append(Self.indent + "of its devices: \(counts.joined(separator: ", "))")
    }
    lines.append(time(round.text("ended_at")) + end(of: round))
    return lines
  }

  private func devices(_ round: TraceRound) -> String {
    let count = round.number("devices") ?? 0
    guard round.others == 0 else { return "this device and \(round.others) other\(round.others == 1 ? "" : "s")" }
    let from = round.fields["registered"] as? Bool == true ? "found in the registry" : "named by the request"
    return count == 0 ? "no device yet" : "\(count) device\(count == 1 ? "" : "s"), \(from)"
  }

  private func lines(of push: [String: Any], in round: TraceRound) -> [String] {
    func text(_ name: String) -> String { (push[name] as? String ?? "").printable }
    func number(_ name: String) -> Int? { (push[name] as? NSNumber)?.intValue }
    var sent = "translated for \(Self.label(text("platform"))) and sent"
    if !text("token").isEmpty { sent += " to \(text("token"))" }
    if !text("pool").isEmpty { sent += " by \(text("pool"))" }
    if let connection = number("connection") { sent += ", connection \(connection)" }
    var lines = [time(text("sent_at")) + sent]
    let outcome = text("outcome") == "delivered" ? "accepted" : text("outcome")
    let error = text("error").isEmpty ? outcome : "\(text("error")), \(text("reason"))"
    if let status = number("status") {
      lines.append(Self.indent + "answered \(status) after \(duration(number("round_trip_ms") ?? 0)): \(error)")
    } else if let silent = number("silent_ms") {
      lines.append(Self.indent + "no answer within \(duration(silent)), the device may have it: \(error)")
    } else if push["sent"] as? Bool == false {
      let why = text("reason") == "unauthorised" ? "it refuses the credential (see `pushfleet status`)" : text("reason")
      lines.append(Self.indent + "not processed by the provider: \(why)")
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
      round.fields["acknowledged"] as? Bool == true ? "done" : "its channel was lost: the broker delivers it again"
    let place = round.text("waits_in")
    guard !place.isEmpty else { return "\(acknowledged): \(words(round.text("outcome"), provider: nil))\(consequences)" }
    let because = round.text("waits_because").isEmpty ? "" : ": \(round.text("waits_because"))"
    let due = time(round.text("due_at")).trimmingCharacters(in: .whitespaces)
    let until = due.isEmpty ? "" : "; the next attempt is at \(due) at the earliest"
    return "moved to \(prefix).\(place)\(because)\(until)\(consequences)"
  }

  private func time(_ text: String) -> String {
    String(text.dropFirst(11).dropLast()).padding(toLength: Self.indent.count, withPad: " ", startingAt: 0)
  }

  private func duration(_ milliseconds: Int) -> String {
    milliseconds < 10_000 ? "\(milliseconds) ms" : "\(milliseconds / 1000) s"
  }
}
