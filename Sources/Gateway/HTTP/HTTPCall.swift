import DeviceRegistry
import Logging
import PushCore
import Reactor
import Settings
import StatusHTTP
import Wire

/// One request until its answer. Confined to the loop's thread.
final class HTTPCall {
  let request: HTTPRequest
  /// The decoded parts of the path; empty for the root.
  let path: [[UInt8]]
  private let query: [(name: [UInt8], value: [UInt8])]
  private let reply: HTTPReply
  let parts: GatewayParts
  /// The route's error format; our own until the route is known.
  var errorFormat = ErrorFormat.own
  private let began = SystemClock.monotonic

  /// Nil if the target can't be read.
  init?(_ request: HTTPRequest, _ reply: HTTPReply, _ parts: GatewayParts) {
    let sides = request.target.split(separator: UInt8(ascii: "?"), maxSplits: 1, omittingEmptySubsequences: false)
    guard sides.first?.first == UInt8(ascii: "/") else { return nil }
    var path: [[UInt8]] = []
    for part in sides[0].dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
      guard let decoded = PercentEncoding.decode(part), Self.isText(decoded) else { return nil }
      path.append(decoded)
    }
    // Accept one extra slash at either end.
    if path.first?.isEmpty == true { path.removeFirst() }
    if path.last?.isEmpty == true { path.removeLast() }
    guard let query = sides.count == 2 ? PercentEncoding.fields(Array(sides[1])) : [],
      query.allSatisfy({ Self.isText($0.value) })
    else { return nil }
    self.request = request
    self.reply = reply
    self.parts = parts
    self.path = path
    self.query = query
  }

  /// True for UTF-8 without control characters. The registry can't look up anything else.
  private static func isText(_ bytes: [UInt8]) -> Bool {
    bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F } && String(validating: bytes, as: UTF8.self) != nil
  }

  var context: GatewayContext { parts.context }
  /// On an installation's path: true for a backend with a key for the application, false for the device with its secret.
  var isBackend = false
  /// Only for a path that names an application.
  var app: [UInt8] { path[2] }
  /// Only for an installation's path.
  var installation: [UInt8] { path[4] }
  func message(_ operation: String) -> JSONObject { ["op": operation, "app": app, "installation": installation] }

  var applications: GatewayApplications { parts.applications }
  var time: Turn { context.loop.time }

  func answer(_ answer: HTTPAnswer) {
    let seconds = SystemClock.monotonic.seconds(since: began)
    context.figures.answered(answer.status, after: seconds)
    context.log.debug(
      "answered", ["method": request.method, "place": place, "status": answer.status, "milliseconds": Int(seconds * 1_000)])
    reply.send(answer)
  }

  /// The path for the log, without names of devices, users and pages.
  private var place: String {
    "/" + path.map { part in Routes.words.first { $0.utf8.elementsEqual(part) } ?? "…" }.joined(separator: "/")
  }

  func query(_ name: String) -> [UInt8]? { query.first { $0.name.elementsEqual(name.utf8) }?.value }

  /// A whole number from 1 on; nil if the query has none.
  func number(_ name: String, most: Int) throws(Fault) -> Int? {
    guard let text = query(name) else { return nil }
    guard let number = Int(String(decoding: text, as: UTF8.self)), (1...most).contains(number) else {
      throw .badRequest("\(name): expected a whole number from 1 to \(most)")
    }
    return number
  }

  /// True if the query has this flag as `true`.
  func has(_ flag: String) -> Bool { query(flag)?.elementsEqual("true".utf8) == true }

  /// The proxies that log users of the console in.
  var login: ProxyLoginSettings? { context.configuration.gateway?.http?.login }

  func header(_ name: String) -> [UInt8]? { request.headers[name] }

  /// Nil if the header is empty or missing.
  var idempotencyKey: [UInt8]? { header("idempotency-key").flatMap { $0.isEmpty ? nil : $0 } }

  /// The key of one of several requests in the call. A header has no line feed, so no other key is equal.
  func idempotencyKey(ofPart number: Int) -> [UInt8]? { idempotencyKey.map { $0 + Array("\n\(number)".utf8) } }

  /// The text after `key=` or `Bearer ` in the header `Authorization`, in any letter case.
  var credential: [UInt8]? { Self.credential(in: request.headers) }

  static func credential(in headers: [String: [UInt8]]) -> [UInt8]? {
    headers["authorization"].flatMap { WebToken.credential($0, behind: "key=") ?? WebToken.bearer($0) }
  }

  var isJSON: Bool { isOf("application/json") }

  /// True for a body of this media type, in any letter case and with any parameters.
  func isOf(_ mediaType: String) -> Bool {
    guard let header = header("content-type") else { return false }
    let type = header.lazy.prefix { $0 != UInt8(ascii: ";") }.filter { $0 != 0x20 }
    return TextForm.isAnyCase(type, of: mediaType.utf8)
  }

  // MARK: questions and refusals

  func refuse(_ fault: Fault) { answer(errorFormat.answer(fault)) }

  /// Asks the registry. If it doesn't answer, answers the call with an error instead.
  func ask<Answer>(
    _ question: RegistryCall<Answer>, orElse words: String = "the registry can't be read for now",
    then: @escaping (Answer) -> Void
  ) {
    guard let registry = context.registry else { return refuse(.unavailable(words)) }
    registry.call(question) { [self] result in
      switch result {
      case .success(let answer): then(answer)
      case .failure: refuse(.unavailable(words))
      }
    }
  }

  /// Answers in our own form: an error code for programs and a reason for people.
  func refuse(_ error: String, _ reason: String, status: Int = 400) { answer(.own(status, error, reason)) }

  /// The body if it is a JSON object. Otherwise answers the call with an error and returns nil.
  func object(_ limits: JSONLimits) -> JSONDocument? {
    do throws(JSONError) {
      let document = try JSONDocument(request.body, limits: limits)
      if document.kind(document.root) == .object { return document }
      refuse("InvalidParameters", "expected an object")
    } catch {
      refuse("InvalidJSON", error.description)
    }
    return nil
  }
}

extension PercentEncoding {
  /// The fields of a query or form, in order. Nil if one can't be decoded or isn't UTF-8, or if there are more than `limit`.
  static func fields(_ text: [UInt8], limit: Int = 1_000) -> [(name: [UInt8], value: [UInt8])]? {
    var fields: [(name: [UInt8], value: [UInt8])] = []
    for part in text.split(separator: UInt8(ascii: "&")) {
      let sides = part.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      guard fields.count < limit, let name = decode(sides[0], plusIsSpace: true),
        let value = sides.count == 2 ? decode(sides[1], plusIsSpace: true) : [],
        String(validating: name, as: UTF8.self) != nil, String(validating: value, as: UTF8.self) != nil
      else { return nil }
      fields.append((name, value))
    }
    return fields
  }
}
