import Providers
import Reactor

@testable import PushCore

/// A pool of APNs with its provider, clock and caller.
final class APNsBench: Sender {
  let world = VirtualWorld()
  let provider = ScriptedProvider()
  let apns: APNsProvider

  init(certificate: Bool = false, topics: [String] = [], settings: PoolSettings = .apns) throws {
    let target = DialTarget(Endpoint(host: "apns.test", port: 443), tls: nil)
    let authentication: APNsCredentials.Authentication =
      certificate ? .certificate(notAfter: 1_900_000_000, topics: topics) : .token(try TestKeys.tokenCredential())
    apns = APNsProvider(APNsCredentials(authentication: authentication, target: target), time: world.time)
    super.init(ProviderPool(.apns(apns), settings: settings, time: world.time, dialer: world))
    world.answerDial = { [provider] _ in .accept(provider.accept()) }
  }

  /// Further members of the requests' `apns.headers`.
  var headers = ""
  override func hand(_ tag: Int) { apns.send(Self.push(tag, headers), for: account, tag: tag) }

  static func device(_ tag: Int) -> String { String(repeating: "0", count: 9) + String(1_000_000 + tag) }
  static func push(_ tag: Int, _ headers: String = "", topic: String = "com.example.app", expiration: Int = 0) -> APNsPush {
    let body = """
      {"to":"apns:ab","priority":"high","apns":{"payload":{"aps":{"alert":"\(tag)"}},"headers":
      {"apns-id":"00000000-0000-5000-8000-000000000000","apns-expiration":"\(expiration)"\(headers)}}}
      """
    var report: LossReport?
    guard
      let request = try? SendRequest(parsing: Array(body.utf8)),
      let template = try? APNsTemplate(
        request, settings: APNsSettings(topic: topic),
        context: TranslationContext(now: 0, deadline: 60_000, messageID: Array("m".utf8)), report: &report
      )
    else { preconditionFailure("the request is a good one") }
    return template.stamp(token: Array(device(tag).utf8)[...])
  }

  /// Sends one push and lets it be answered, so that the connection is open in full.
  func warmUp() {
    offer([-1])
    world.settle()
  }

  var tokensSeen: Set<String> { Set(provider.requests.map(\.authorization)) }
}
