/// One row of a provider's table: the meaning of a reason.
public struct ReplyRow: Sendable {
  public let reason: String
  /// The status of the answer. A known reason counts with a status of the same class only (4xx, 5xx).
  public let status: Int
  public let reaction: Reaction
  public let connection: ConnectionReaction
  public let alarm: Bool
  /// The meaning and the advice, for operators.
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

/// The meaning of a range of HTTP statuses, for answers whose reason is missing or unknown.
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

  /// Uses the first row that contains `status`. An unknown `word` becomes the reason, for people to read.
  static func judge(_ status: Int, _ word: String?, by rows: [StatusRow]) -> ReplyMeaning {
    let reason = if let word, !word.isEmpty { word } else { "HTTP \(status)" }
    guard let row = rows.first(where: { $0.statuses.contains(status) }) else {
      return ReplyMeaning(reaction: .drop(.internalServerError), reason: reason, status: status, alarm: true)
    }
    return ReplyMeaning(
      reaction: row.reaction, reason: reason, status: status, connection: row.connection, alarm: row.alarm)
  }
}
