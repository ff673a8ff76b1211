import HTTP2
import PushCore
import Wire

extension ProviderProbe {
  /// Replaces a device's token. Not even a simulator accepts it.
  package static let apnsDevice = "0"
}

extension ProbeRequest {
  /// - Parameter authorization: nil on a certificate's connection.
  static func apns(_ target: DialTarget, topic: String, authorization: [UInt8]?, device: String) -> ProbeRequest {
    let template = HeaderTemplate(
      constant: [
        (":method", "POST"), (":scheme", "https"), (":authority", target.authority), (":path", "/3/device/\(device)"),
        ("apns-topic", topic), ("apns-push-type", "background"), ("apns-priority", "5"), ("apns-expiration", "0"),
      ], variable: ["authorization"], unindexed: ["authorization"])
    var values = HeaderValues()
    if let authorization { values.append(authorization) } else { values.appendAbsent() }
    return ProbeRequest(template: template, values: values, body: Array(#"{"aps":{"content-available":1}}"#.utf8))
  }
}

extension CredentialProbe {
  /// Has the form of an APNs token, but belongs to no device. APNs might refuse a malformed token before it checks the topic.
  package static let apnsDevice = String(repeating: "0123456789abcdef", count: 4)

  /// - Returns: an object to keep until `completion` is called.
  /// - Throws: if the key can't sign.
  public static func apns(
    _ credentials: APNsCredentials, topic: String, _ time: Turn, _ dialer: any Dialer,
    completion: @escaping (Outcome) -> Void
  ) throws -> AnyObject {
    var authorization: [UInt8]?
    if case .token(let credential) = credentials.authentication {
      authorization = try credential.token(ProviderToken.number(at: time.wallClock)).authorization
    }
    return send(
      .apns(credentials.target, topic: topic, authorization: authorization, device: apnsDevice), to: credentials.target, time,
      dialer, interpret: { APNsReply.interpret(status: $0.status, body: $0.body) }, completion)
  }
}
