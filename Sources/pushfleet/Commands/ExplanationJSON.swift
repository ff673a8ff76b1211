import PushCore

/// An explanation for programs: one object per platform, or one for a request that is refused as a whole.
extension Explanation {
  /// `{"platform":"apns","path":…,"headers":{…},"payload":{…},"bytes":181,"limit":4096,"losses":[…]}`, or
  /// `{"platform":…,"error":"MessageTooBig","reason":…}`.
  var jsonLines: [[UInt8]] {
    if let rejection { return [Self.object([]) { Self.append(rejection, to: &$0) }] }
    return views.map { view in
      let platform = view.platform == .apns ? "apns" : "fcm"
      switch view.outcome {
      case .failure(let rejection): return Self.object([("platform", platform)]) { Self.append(rejection, to: &$0) }
      case .success(let sending):
        return Self.object([("platform", platform), ("path", sending.path)]) { Self.append(sending, to: &$0) }
      }
    }
  }

  private static func object(_ members: [(String, String)], _ rest: (inout [UInt8]) -> Void) -> [UInt8] {
    var line = Array("{".utf8)
    for (name, value) in members { append(name, value, to: &line) }
    rest(&line)
    line.append(UInt8(ascii: "}"))
    return line
  }

  private static func append(_ name: String, _ value: String, to line: inout [UInt8]) {
    if line.last != UInt8(ascii: "{") { line.append(UInt8(ascii: ",")) }
    line.appendSafeJSONString(name)
    line.append(UInt8(ascii: ":"))
    line.appendSafeJSONString(value)
  }

  private static func append(_ rejection: Rejection, to line: inout [UInt8]) {
    append("error", rejection.code.rawValue, to: &line)
    append("reason", rejection.reason, to: &line)
  }

  private static func append(_ sending: Sending, to line: inout [UInt8]) {
    line += Array(#","headers":{"#.utf8)
    for header in sending.headers { append(header.name, header.value, to: &line) }
    line += Array(#"},"payload":"#.utf8) + sending.payload
    line += Array(#","bytes":\#(sending.bytes),"limit":\#(sending.limit),"losses":"#.utf8)
    sending.losses.append(to: &line)
  }
}
