@testable import Providers
@testable import PushCore

/// Any answer has a meaning, with a word that is fit for a header and a wait within bounds.
enum AnswersFuzz {
  private static let now: Int64 = 1_795_209_720_123

  static func run(_ input: inout Input) throws(Violation) {
    let choices = input.byte()
    let status = choices & 1 == 0 ? 200 + Int(input.byte()) * 2 : Int(input.integer(UInt16.self))
    let field = input.counted()
    let body = input.remainder()
    let now = choices & 2 == 0 ? Self.now : nil
    try check(APNsReply.interpret(status: status, body: body, retryAfter: field, now: now), status)
    try check(FCMReply.interpret(status: status, body: body, retryAfter: field, now: now), status)
    try checkWebPush(status, body, field, now: now)
    _ = FCMReply.messageName(body)
    try checkDates(field)
    try checkToken(AccessTokenAnswer(status: status, body: body))
  }

  private static func check(_ meaning: ReplyMeaning, _ status: Int) throws(Violation) {
    try require(meaning.status == status, "status \(status) is told as \(meaning.status)")
    try require(
      meaning.reason.utf8.count <= 200 && meaning.reason.utf8.allSatisfy { 0x20...0x7E ~= $0 }, "a reason that is no word")
    try require(
      (meaning.reaction == .delivered) == (200...299 ~= status), "status \(status) means \(meaning.reaction)")
    try require((meaning.reaction == .delivered) || !meaning.reason.isEmpty, "a failure without a word")
    if let wait = meaning.retryAfter { try require(RetryAfter.range ~= wait, "a wait of \(wait) s") }
    if let since = meaning.invalidSince { try require(1...Timestamp.latest ~= since, "a token dead since \(since)") }
  }

  private static func checkWebPush(_ status: Int, _ body: [UInt8], _ field: [UInt8], now: Int64?) throws(Violation) {
    for headers in [WebPushReply.Headers(retryAfter: field), .init(wnsError: field)] {
      let meaning = WebPushReply.interpret(status: status, body: body, headers: headers, now: now)
      try check(meaning, status)
      try require(!meaning.reason.contains("/"), "a reason with an address or a path")
    }
  }

  private static func checkDates(_ field: [UInt8]) throws(Violation) {
    if let seconds = HTTPDate.seconds(field[...]) {
      try require(0...Timestamp.latest / 1000 + 86_400 ~= seconds, "a date \(seconds) s after 1970")
    }
    for wait in [RetryAfter.seconds(field, now: now), RetryAfter.seconds(field, now: nil)] {
      if let wait { try require(RetryAfter.range ~= wait, "a wait of \(wait) s") }
    }
  }

  private static func checkToken(_ answer: AccessTokenAnswer) throws(Violation) {
    switch answer {
    case .token(let token, let lifetime):
      try require(!token.isEmpty && token.allSatisfy { 0x21...0x7E ~= $0 }, "a token that is no header's value")
      try require(1...86_400 ~= lifetime, "a lifetime of \(lifetime) s")
    case .refused(let word), .failed(let word), .unanswered(let word):
      try require(word.utf8.allSatisfy { 0x20...0x7E ~= $0 } && word.utf8.count < 200, "a word that is none")
    }
  }
}
