import Storage

/// How far a request to an audience, or a page of one, has come.
struct AudienceWork {
  enum Stage {
    /// The registry decides what is to be done. Becomes chaining, sending or ending.
    case asking
    /// The devices are known; the message of the next page is on its way to the queue. Becomes sending.
    case chaining
    /// Pushes go out. Becomes ending.
    case sending
    /// All devices have ended: feedback, dead letters, the report, the result or the message for the ladder are on their way. Final.
    case ending
  }

  let audience: Audience
  var stage = Stage.asking
  var survey: AudienceSurvey?
  /// What is known of earlier deliveries of the page.
  var settledBefore = SettledDevices()
  var campaign: Campaign?
  /// The breaker has asked for the campaign to be held.
  var isHeld = false
  /// The campaign's result is published from here.
  var isResultClaimed = false
  /// Who asks for that: one name, so that asking again keeps the claim.
  var claimant: [UInt8] = []
  /// A page with too many devices left to be named by a message: what is settled of it, and when the earliest of the others is to be tried
  /// again. The page goes to the ladder when the registry has the record.
  var grown: (record: PageRecord, earliest: Int64)?

  init(_ audience: Audience) { self.audience = audience }
}
