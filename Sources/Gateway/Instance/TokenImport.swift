import DeviceRegistry
import PushCore

/// Registers provider tokens directly: tokens of an import, and unknown tokens in requests, since senders of GCM never
/// registered any.
enum TokenImport {
  /// For a token whose outcome is unknown. The caller may repeat all: registering twice does no harm.
  private static let unsettled = Fault.unavailable("it is not registered yet")

  /// - Parameter then: called once with the registrations in the order of the tokens; nil for a refused token.
  static func register(
    _ tokens: [(platform: Platform, token: [UInt8])], _ app: [UInt8], environment: DeviceEnvironment?, sender: [UInt8]?,
    for call: HTTPCall, then: @escaping (Result<[[UInt8]?], Fault>) -> Void
  ) {
    guard !tokens.isEmpty else { return then(.success([])) }
    let answers = Gathering<Result<[UInt8]?, Fault>>(tokens.count) { then(Self.all($0)) }
    for (index, (platform, token)) in tokens.enumerated() {
      let registration: JSONObject = [
        "op": "register", "app": app, "platform": platform.word, "token": token,
        "environment": JSONOptional(platform == .apns ? environment?.name : nil), "sender": JSONOptional(sender),
      ]
      let change = registration.line
      if case .failure = RegistryChange.parse(change, limits: call.parts.changes.limits) {
        answers.set(index, .success(nil))
        continue
      }
      call.parts.changes.change(change, app: app) { outcome in
        switch outcome {
        case .success(let answer?): answers.set(index, .success(answer.string("registration")))
        case .success(nil), .failure: answers.set(index, .failure(Self.unsettled))
        }
      }
    }
  }

  /// Registers those texts that are tokens of the application's providers and unknown to the registry. Senders of GCM know no
  /// subscriptions to web push.
  /// - Parameter then: called once, unless the call is answered with an error. Texts that are no tokens and refused tokens fail when
  ///   they are used later.
  static func registerUnknown(
    _ texts: [[UInt8]], _ app: GatewayApplications.App, _ key: GatewayKey, for call: HTTPCall, then: @escaping () -> Void
  ) {
    let tokens = Set(texts).compactMap { text -> (platform: Platform, token: [UInt8])? in
      guard case .token(let platform, let token)? = DeviceReference(text: text), platform != .webpush,
        app.platforms.contains(platform)
      else { return nil }
      return (platform, token)
    }
    guard call.parts.http.registersUnknown, !tokens.isEmpty else { return then() }
    let answers = Gathering<Result<Bool, Fault>>(tokens.count) { results in
      switch Self.all(results) {
      case .success(let known):
        let unknown = tokens.indices.filter { !known[$0] }.map { tokens[$0] }
        register(unknown, app.id, environment: key.environment, sender: key.sender, for: call) { result in
          if case .failure(let fault) = result { call.refuse(fault) } else { then() }
        }
      case .failure(let fault): call.refuse(fault)
      }
    }
    for (index, (platform, token)) in tokens.enumerated() {
      call.parts.registry.call(.read { try $0.device(.token(platform, token), app: app.id) }) { result in
        answers.set(index, result.map { !$0.isEmpty }.mapError { _ in Self.unsettled })
      }
    }
  }

  private static func all<Answer>(_ results: [Result<Answer, Fault>]) -> Result<[Answer], Fault> {
    Result { () throws(Fault) in try results.map { result throws(Fault) in try result.get() } }
  }
}
