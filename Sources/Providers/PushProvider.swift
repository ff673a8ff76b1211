import HTTP2
import PushCore

/// The platform-specific part of a pool: builds requests, interprets answers, and provides the authorisation. A provider
/// belongs to one pool and is confined to its loop. It stores the pool's pushes by slot.
protocol PushProvider: AnyObject {
  var platform: Platform { get }
  /// Set by the pool, which owns the provider.
  var pool: ProviderPool? { get set }
  var endpoint: ProviderEndpoint { get }
  /// The current credential for operators: its ids, never its secrets.
  var credentialName: String { get }

  // MARK: Requests

  /// Submits the push in `slot` with the current authorisation.
  /// - Returns: true if the push tries an authorisation. The pool then calls `trialSucceeded` if the provider accepts the
  ///   push, and `trialEnded` when the push has left its stream.
  func submit(_ slot: Int, to session: ClientSession) -> Bool
  func forget(_ slot: Int)
  /// A probe's answer tells whether the provider accepts the credential. Otherwise a push must try it.
  var probesCredential: Bool { get }
  /// A push to no device with the current authorisation; nil if there is no authorisation or no topic to ask for.
  func probe(_ question: ProbeQuestion) -> ProbeRequest?

  // MARK: Answers

  /// - Parameter slot: of the push that the provider has answered; nil for a probe.
  func interpret(_ response: Response, to slot: Int?) -> ReplyMeaning
  func words(for meaning: ReplyMeaning) -> String
  /// The provider's name for a delivered message; nil if the answer has none.
  func messageName(in response: Response) -> [UInt8]?
  /// The topic of the push in `slot`; nil if the platform has no topics.
  func topic(of slot: Int) -> PushTopic?

  // MARK: Authorisation

  /// The authorisation of the next push; nil if there is none.
  func authorise() -> Authorisation?
  /// The provider refused the authorisation `generation`. Returns false if it gets no replacement.
  /// - Parameter isTrusted: the provider accepts other pushes with it; they use it until there is another.
  func replaceAuthorisation(_ generation: Int, _ refusal: Authorisation.Refusal, isTrusted: Bool) -> Bool
  /// The provider accepted a push or probe with the authorisation `generation`.
  func trialSucceeded(with generation: Int)
  /// The push that tried an authorisation has left its stream.
  func trialEnded()
  /// Fetches the authorisation; nil if the provider makes it itself.
  var source: AccessTokens? { get }
}

/// Defaults for a platform without topics that makes its own authorisation and tries none.
extension PushProvider {
  func topic(of slot: Int) -> PushTopic? { nil }
  var probesCredential: Bool { true }
  func trialSucceeded(with generation: Int) {}
  func trialEnded() {}
  var source: AccessTokens? { nil }
}
