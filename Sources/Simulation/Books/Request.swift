/// One request of the workload.
struct Request {
  enum Audience {
    case tokens([String])
    /// The topic `all` of the application.
    case everybody
  }

  var number: Int
  var app: Int
  var audience: Audience
  /// Seconds; nil for the default of four weeks.
  var lifetime: Int?
  /// `high` or `normal`.
  var lane: String
  /// Unix milliseconds.
  var publishedAt: Int64

  /// Requests to several applications may have the same id and body.
  var messageID: String
  /// What the books know it by.
  var id: String { "\(Scenario.app(app))/\(messageID)" }

  var deadline: Int64 { publishedAt + Int64(lifetime.map { $0 == 0 ? 10_000 : $0 * 1000 } ?? 2_419_200_000) }

  var body: String {
    let target =
      switch audience {
      case .tokens(let tokens) where tokens.count == 1: #""to":"\#(tokens[0])""#
      case .tokens(let tokens): #""registration_ids":[\#(tokens.map { "\"\($0)\"" }.joined(separator: ","))]"#
      case .everybody: #""to":"/topics/all""#
      }
    let life = lifetime.map { #","time_to_live":\#($0)"# } ?? ""
    return #"{\#(target)\#(life),"data":{"request":"\#(messageID)"},"notification":{"body":"b"}}"#
  }
}
