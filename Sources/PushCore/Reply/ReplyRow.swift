/// One row of a provider's table: the meaning of a reason or, if the reason is missing or unknown, of a range of HTTP statuses.
public struct ReplyRow: Sendable {
  /// Empty if the statuses alone decide.
  public let reason: String
  /// A reason has one status. It counts with a status of the same class only (4xx, 5xx).
  public let statuses: ClosedRange<Int>
  public let reaction: Reaction
  public let connection: ConnectionReaction
  public let alarm: Bool
  /// The meaning and the advice, for operators.
  public let words: String

  init(
    _ statuses: ClosedRange<Int>, _ reaction: Reaction, connection: ConnectionReaction = .keep, alarm: Bool = false,
    _ words: String, reason: String = ""
  ) {
    self.reason = reason
    self.statuses = statuses
    self.reaction = reaction
    self.connection = connection
    self.alarm = alarm
    self.words = words
  }

  init(
    _ status: Int, _ reason: String, _ reaction: Reaction, connection: ConnectionReaction = .keep, alarm: Bool = false,
    _ words: String
  ) {
    self.init(status...status, reaction, connection: connection, alarm: alarm, words, reason: reason)
  }

  public var status: Int { statuses.lowerBound }

  /// A known reason with a status of another class says nothing: a "BadDeviceToken" in a 500 is no statement about the token.
  func counts(with status: Int) -> Bool { self.status / 100 == status / 100 }

  func meaning(status: Int) -> ReplyMeaning { meaning(status: status, reason: reason) }

  fileprivate func meaning(status: Int, reason: String) -> ReplyMeaning {
    ReplyMeaning(reaction: reaction, reason: reason, status: status, connection: connection, alarm: alarm)
  }
}

extension [ReplyRow] {
  /// The first row that contains the status. The last row contains all.
  func row(of status: Int) -> ReplyRow { first { $0.statuses.contains(status) } ?? self[count - 1] }

  /// The first row of each reason.
  var byReason: [String: ReplyRow] { Dictionary(map { ($0.reason, $0) }, uniquingKeysWith: { first, _ in first }) }

  /// Judges an answer by the row of its word; if there is none that counts, by its status. An unknown `word` becomes the
  /// reason, for people to read.
  func judge(_ status: Int, _ word: String?, by row: ReplyRow? = nil) -> ReplyMeaning {
    if let row, row.counts(with: status) { return row.meaning(status: status) }
    let reason = if let word, !word.isEmpty { word } else { "HTTP \(status)" }
    return self.row(of: status).meaning(status: status, reason: reason)
  }
}
