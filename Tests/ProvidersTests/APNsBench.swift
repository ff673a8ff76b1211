import Providers

@testable import PushCore

/// A pool of APNs with its provider, clock and caller.
final class APNsBench: Sender {
  let world = VirtualWorld()
  let provider = ScriptedProvider()
  let apns: APNsPool

  init(
    certificate: Bool = false, tokens: ProviderTokenCache = ProviderTokenCache(), settings: APNsPool.Settings = .init()
  ) throws {
    let target = DialTarget(host: "apns.test", port: 443, tls: nil)
    let authentication: APNsCredentials.Authentication =
      certificate ? .certificate(notAfter: 1_900_000_000) : .token(try TestKeys.tokenCredential())
    apns = APNsPool(
      credentials: APNsCredentials(authentication: authentication, target: target), surroundings: world, settings: settings,
      tokens: tokens)
    super.init()
    apns.handler = self
    apns.observer = self
    world.answerDial = { [provider] _ in .accept(provider.accept()) }
  }

  override var pool: any Pool { apns }
  override func hand(_ tag: Int) { apns.send(Self.push(tag), tag: tag) }

  static func device(_ tag: Int) -> String { String(repeating: "0", count: 9) + String(1_000_000 + tag) }
  static func push(_ tag: Int) -> APNsPush {
    APNsPush(
      token: Array(device(tag).utf8), topic: Array("com.example.app".utf8), pushType: Array("alert".utf8), priority: 10,
      expiration: 0, collapseID: nil, id: Array("00000000-0000-5000-8000-000000000000".utf8),
      payload: Array("{\"aps\":{\"alert\":\"\(tag)\"}}".utf8))
  }

  /// Sends one push and lets it be answered, so that the connection is open in full.
  func warmUp() {
    offer([-1])
    world.settle()
  }

  var tokensSeen: Set<String> { Set(provider.requests.map(\.authorization)) }
}
