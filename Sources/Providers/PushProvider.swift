import HTTP2
import PushCore

/// What a platform does for a pool: it builds a request of each push, says what an answer means, and has the authorisation that requests go out with.
///
/// A provider belongs to one pool and is confined to its loop. It keeps the pushes that the pool has taken, by their slots.
protocol PushProvider: AnyObject {
  var platform: Platform { get }
  /// Set by the pool, which owns the provider.
  var pool: ProviderPool? { get set }
  /// Where pushes go with the present credential.
  var endpoint: ProviderEndpoint { get }
  /// The present credential, for operators: its ids, never its secrets.
  var credentialName: String { get }

  // MARK: Requests

  /// Hands the push in `slot` to the session with the present authorisation.
  /// - Returns: true where the push tries an authorisation: the pool says when the provider has taken the push, and when the push has left its stream.
  func submit(_ slot: Int, to session: ClientSession) -> Bool
  /// Forgets the push in `slot`.
  func forget(_ slot: Int)
  /// A push that reaches nobody, with the present authorisation; nil while there is none, or nothing shows what to ask for.
  func probe(_ question: ProbeQuestion) -> ProbeRequest?

  // MARK: Answers

  func interpret(_ response: Response) -> ReplyMeaning
  /// What an answer means and what to do about it, for operators.
  func words(for meaning: ReplyMeaning) -> String
  /// The provider's name for the message, of a delivered one; nil where the answer has none.
  func messageName(in response: Response) -> [UInt8]?
  /// The topic of the push in `slot`; nil where the platform has no topics.
  func topic(of slot: Int) -> PushTopic?

  // MARK: Authorisation

  /// What the next push would go out with; nil while there is none.
  func authorise() -> Authorisation?
  /// The provider has refused the authorisation `generation`. False when there will be no other one for it.
  /// - Parameter isTrusted: the provider takes other pushes with it; they go on with it until there is another one.
  func replaceAuthorisation(_ generation: Int, _ refusal: Authorisation.Refusal, isTrusted: Bool) -> Bool
  /// The provider has taken a push, or a probe, that went out with the authorisation `generation`.
  func trialSucceeded(with generation: Int)
  /// The push that tried an authorisation is on no stream any more.
  func trialEnded()
  /// What fetches the authorisation; nil where the provider makes it itself.
  var source: (any AuthorisationSource)? { get }
}

/// For a platform without topics that makes its authorisation itself and tries none.
extension PushProvider {
  func topic(of slot: Int) -> PushTopic? { nil }
  func trialSucceeded(with generation: Int) {}
  func trialEnded() {}
  var source: (any AuthorisationSource)? { nil }
}
