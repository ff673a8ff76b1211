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
    /// All devices have ended or are put off: reports and publications are on their way. Final.
    case ending
  }

  let audience: Audience
  var stage = Stage.asking
  var survey: AudienceSurvey?
  /// What is known of earlier deliveries of the page.
  var record: PageRecord?
  var campaign: Campaign?
  /// The breaker has asked for the campaign to be held.
  var isHeld = false
  /// The campaign's result is published from here.
  var isResultClaimed = false

  init(_ audience: Audience) { self.audience = audience }
}
