/// One row of a provider's table: what a reason means and why.
public struct ReplyRow: Sendable {
  /// The provider's word.
  public let reason: String
  /// The HTTP status that it comes with; 0 for any.
  public let status: Int
  public let reaction: Reaction
  public let connection: ConnectionReaction
  public let alarm: Bool
  /// For operators: what it means and what to do.
  public let words: String

  init(
    _ status: Int, _ reason: String, _ reaction: Reaction, connection: ConnectionReaction = .keep, alarm: Bool = false,
    _ words: String
  ) {
    self.status = status
    self.reason = reason
    self.reaction = reaction
    self.connection = connection
    self.alarm = alarm
    self.words = words
  }

  func meaning(status: Int) -> ReplyMeaning {
    ReplyMeaning(reaction: reaction, reason: reason, status: status, connection: connection, alarm: alarm)
  }
}

/// What an answer means whose reason is missing or unknown: judged by its HTTP status alone.
public struct StatusRow: Sendable {
  public let statuses: ClosedRange<Int>
  public let reaction: Reaction
  public let connection: ConnectionReaction
  public let alarm: Bool
  public let words: String

  init(
    _ statuses: ClosedRange<Int>, _ reaction: Reaction, connection: ConnectionReaction = .keep, alarm: Bool = false,
    _ words: String
  ) {
    self.statuses = statuses
    self.reaction = reaction
    self.connection = connection
    self.alarm = alarm
    self.words = words
  }

  static func words(_ status: Int, by rows: [StatusRow]) -> String {
    rows.first { $0.statuses.contains(status) }?.words ?? ""
  }

  /// By the first row that holds `status`; an unknown `word` is kept for people.
  static func judge(_ status: Int, _ word: String?, by rows: [StatusRow]) -> ReplyMeaning {
    let reason = if let word, !word.isEmpty { word } else { "HTTP \(status)" }
    guard let row = rows.first(where: { $0.statuses.contains(status) }) else {
      return ReplyMeaning(reaction: .drop(.internalServerError), reason: reason, status: status, alarm: true)
    }
    return ReplyMeaning(
      reaction: row.reaction, reason: reason, status: status, connection: row.connection, alarm: row.alarm)
  }
}
