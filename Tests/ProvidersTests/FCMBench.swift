import HTTP2
import Reactor

@testable import Providers

/// A pool of FCM with its provider, its token endpoint, clock and caller.
final class FCMBench: Sender {
  let world = VirtualWorld()
  let provider = ScriptedProvider()
  let oauth = ScriptedProvider()
  let fcm: FCMProvider
  /// Tokens given out so far; the token says which it is.
  private(set) var tokensGiven = 0
  var lifetime = 3599

  init(settings: PoolSettings = .fcm) throws {
    fcm = FCMProvider(try Self.credentials(), time: world.time, dialer: world)
    super.init(ProviderPool(.fcm(fcm), settings: settings, time: world.time, dialer: world))
    answerDials { [provider] in .accept(provider.accept()) }
    provider.answer = { Self.success($0) }
    oauth.answer = { [unowned self] _ in token() }
  }

  /// What becomes of connections to FCM; the token endpoint takes all.
  func answerDials(_ answer: @escaping () -> VirtualWorld.Dial) {
    world.answerDial = { [oauth] target in target.endpoint.host == "oauth.test" ? .accept(oauth.accept()) : answer() }
  }

  static func credentials() throws -> FCMCredentials {
    try FCMCredentials(
      account: ServiceAccount(file: TestKeys.serviceAccountFile()),
      target: DialTarget(Endpoint(host: "fcm.test", port: 443), tls: nil),
      tokenEndpoint: nil, tls: nil)
  }

  func token() -> ScriptedProvider.Answer {
    tokensGiven += 1
    return .status(200, "{\"access_token\":\"token-\(tokensGiven)\",\"expires_in\":\(lifetime),\"token_type\":\"Bearer\"}")
  }

  static func success(_ request: ScriptedProvider.Request) -> ScriptedProvider.Answer {
    .status(200, "{\"name\":\"projects/example-project/messages/\(String(decoding: request.body, as: UTF8.self))\"}")
  }

  /// Stands behind the tag in each payload.
  var filler: [UInt8] = []
  var wantsNames = true
  override func hand(_ tag: Int) {
    fcm.send(payload: Array("\(tag)".utf8) + filler, for: account, tag: tag, wantsName: wantsNames)
  }

  func warmUp() {
    offer([-1])
    world.settle()
  }

  static func error(_ code: Int, _ status: String, _ headers: [(String, String)] = []) -> ScriptedProvider.Answer {
    .status(code, "{\"error\":{\"code\":\(code),\"message\":\"m\",\"status\":\"\(status)\"}}", headers)
  }
}
