import PushCore

/// An explanation for programs: one object per platform, or one for a request that is refused as a whole.
extension Explanation {
  /// `{"platform":"apns","path":…,"headers":{…},"payload":{…},"bytes":181,"limit":4096,"losses":[…]}`, or
  /// `{"platform":…,"error":"MessageTooBig","reason":…}`, with `hint` where something would help.
  var jsonLines: [[UInt8]] {
    if let rejection {
      var object = JSONObjectWriter()
      append(rejection, to: &object)
      return [object.closed()]
    }
    return views.map { view in
      var object = JSONObjectWriter()
      object.set("platform", view.way.platform == .apns ? "apns" : "fcm")
      switch view.outcome {
      case .failure(let rejection): append(rejection, to: &object)
      case .success(let sending): Self.append(sending, to: &object)
      }
      return object.closed()
    }
  }

  private func append(_ rejection: Rejection, to object: inout JSONObjectWriter) {
    object.set("error", rejection.code.rawValue)
    object.set("reason", rejection.reason)
    if let hint { object.set("hint", hint) }
  }

  private static func append(_ sending: Sending, to object: inout JSONObjectWriter) {
    object.set("path", sending.path)
    object.set("headers") { headers in
      for header in sending.headers { headers.set(header.name, header.value) }
    }
    object.set("payload", raw: sending.payload)
    object.set("bytes", Int64(sending.bytes))
    object.set("limit", Int64(sending.limit))
    var losses: [UInt8] = []
    sending.losses.append(to: &losses)
    object.set("losses", raw: losses)
  }
}
