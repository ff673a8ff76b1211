import DeviceRegistry
import PushCore
import StatusHTTP

/// `POST /v1/apps/<app>/messages`: requests in the format of the send queues, one as JSON or many as NDJSON.
enum Messages {
  private static let mostLines = 1_000
  /// Bytes of the answers to the lines of a call. A result that has no room is answered as accepted.
  private static let mostAnswer = 4 << 20

  struct Order {
    var app: GatewayApplications.App
    /// Without its body and lane.
    var request: SendService.Request
    /// Nil if the call names no lane.
    var isHigh: Bool?
  }

  static func take(_ call: HTTPCall, _ key: GatewayKey) throws(Fault) {
    guard key.apps.contains(call.path[2]), let app = call.applications[call.path[2]] else { throw .foreignApp }
    let order = try order(call, key, app)
    if call.isOf("application/x-ndjson") { return try takeLines(call, order) }
    send(call, call.request.body, order) { _, answer in call.answer(answer) }
  }

  static func order(_ call: HTTPCall, _ key: GatewayKey, _ app: GatewayApplications.App) throws(Fault) -> Order {
    let request = SendService.Request(
      app: app.id, key: key, body: [], isHigh: false, idempotencyKey: call.idempotencyKey,
      traceparent: call.header("traceparent"), wait: try wait(call))
    return Order(app: app, request: request, isHigh: try isHigh(call))
  }

  private static func wait(_ call: HTTPCall) throws(Fault) -> Int {
    guard let text = call.query("wait") else { return 0 }
    guard let seconds = Int(String(decoding: text, as: UTF8.self)), (0...call.parts.send.wait).contains(seconds) else {
      throw .badRequest("wait: expected 0 to \(call.parts.send.wait) seconds (gateway.http.wait)")
    }
    return seconds
  }

  private static func isHigh(_ call: HTTPCall) throws(Fault) -> Bool? {
    guard let lane = call.query("lane") else { return nil }
    guard let priority = Priority(rawValue: String(decoding: lane, as: UTF8.self)) else {
      throw .badRequest("lane: expected high or normal")
    }
    return priority == .high
  }

  /// - Parameter then: called once; during this call if the answer is known. The message id is empty for a refused request.
  static func send(
    _ call: HTTPCall, _ body: [UInt8], _ order: Order, then: @escaping (_ messageID: [UInt8], HTTPAnswer) -> Void
  ) {
    let request: SendRequest
    do throws(Rejection) { request = try SendRequest(parsing: body, limits: order.app.limits) } catch {
      return then([], .own(400, error.code.rawValue, error.reason))
    }
    var sent = order.request
    sent.body = body
    sent.isHigh = order.isHigh ?? request.isHigh(orElse: order.app.defaultPriority)
    call.parts.send.send(sent) { messageID, outcome in then(messageID, Self.answer(messageID, outcome)) }
  }

  static func answer(_ messageID: [UInt8], _ outcome: SendService.Outcome) -> HTTPAnswer {
    switch outcome {
    // The result has the message id.
    case .result(let body) where WorkerResult(body) != nil: return .json(200, line: body)
    case .result, .accepted: return .json(202, ["message_id": messageID])
    case .refused(let reason): return ErrorFormat.own.answer(.unavailable(reason))
    case .unknown(let reason):
      return .own(
        503, PushError.unknown.rawValue, "it may have been accepted: \(reason)", headers: Fault.unavailable("").headers)
    case .reused: return ErrorFormat.own.answer(.reused)
    }
  }

  // MARK: NDJSON

  private static func takeLines(_ call: HTTPCall, _ order: Order) throws(Fault) {
    let lines = try Self.lines(call.request.body)
    call.parts.keys.charge(order.request.key, requests: lines.count - 1)
    var bytes = 0
    let answers = Gathering(lines.count) { call.answer(Self.answer(zip(lines.map(\.number), $0))) }
    for (index, line) in lines.enumerated() {
      var order = order
      order.request.idempotencyKey = call.idempotencyKey(ofPart: line.number)
      send(call, Array(call.request.body[line.range]), order) { messageID, answer in
        let hasRoom = answer.status != 200 || bytes + answer.body.count <= Self.mostAnswer
        let answer = hasRoom ? answer : Self.answer(messageID, .accepted)
        bytes += answer.body.count
        answers.set(index, answer)
      }
    }
  }

  private static func answer(_ answers: some Sequence<(Int, HTTPAnswer)>) -> HTTPAnswer {
    var text: [UInt8] = []
    for (number, answer) in answers {
      text += Array(#"{"line":\#(number),"status":\#(answer.status),"#.utf8)
      // A result is one line already, and each answer is an object with members.
      text += answer.body.dropFirst()
      text.append(0x0A)
    }
    return HTTPAnswer(status: 200, contentType: "application/x-ndjson", body: text)
  }

  /// The lines that aren't blank, with their numbers from 1.
  private static func lines(_ body: [UInt8]) throws(Fault) -> [(number: Int, range: Range<Int>)] {
    var lines: [(number: Int, range: Range<Int>)] = []
    var (number, start) = (0, 0)
    while start < body.count {
      let end = body[start...].firstIndex(of: 0x0A) ?? body.count
      number += 1
      if !body[start..<end].allSatisfy({ $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }) { lines.append((number, start..<end)) }
      guard lines.count <= mostLines else { throw .badRequest("line \(number): more than \(mostLines) requests") }
      start = end + 1
    }
    guard !lines.isEmpty else { throw .badRequest("expected 1 to \(mostLines) requests, one on each line") }
    return lines
  }
}
