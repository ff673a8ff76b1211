import HTTP2

/// A push that reaches nobody: what the provider says to it is what is wanted.
struct ProbeRequest {
  let template: HeaderTemplate
  var values: HeaderValues
  let body: [UInt8]

  /// - Parameters:
  ///   - authorization: nil on a certificate's connection.
  ///   - device: the token of no device.
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

  /// FCM only validates it.
  /// - Parameters:
  ///   - template: of a project's messages.
  ///   - device: the token of no device.
  static func fcm(_ template: HeaderTemplate, authorization: [UInt8], device: String) -> ProbeRequest {
    var values = HeaderValues()
    values.append(authorization)
    let body = #"{"validate_only":true,"message":{"token":"\#(device)","data":{"probe":"1"}}}"#
    return ProbeRequest(template: template, values: values, body: Array(body.utf8))
  }
}
