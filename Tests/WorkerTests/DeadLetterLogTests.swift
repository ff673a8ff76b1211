import PushCore
import Testing
import Wire

@testable import Delivery

@Suite("The log of dead letters")
struct DeadLetterLogTests {
  private func time(_ seconds: Double) -> MonotonicTime { MonotonicTime(nanoseconds: 0).advanced(bySeconds: seconds) }

  @Test("shows the first of a kind at once, the others once a minute, and a returning kind as new")
  func throttled() {
    var log = DeadLetterLog()
    #expect(log.due(at: time(1)).isEmpty)
    #expect(log.note(app: 0, error: .invalidPackageName, reason: "TopicDisallowed")?.reason == "TopicDisallowed")
    for _ in 0..<2999 { #expect(log.note(app: 0, error: .invalidPackageName, reason: "TopicDisallowed") == nil) }
    #expect(log.note(app: 1, error: .invalidPackageName, reason: "TopicDisallowed") != nil)
    #expect(log.note(app: 0, error: .unavailable, reason: "TopicDisallowed") != nil)
    #expect(log.due(at: time(60)).isEmpty)
    let report = log.due(at: time(62))
    #expect(report.count == 1 && report.first?.count == 2999 && report.first?.kind.app == 0)
    #expect(log.note(app: 0, error: .invalidPackageName, reason: "TopicDisallowed") == nil)
    #expect(log.due(at: time(123)).map(\.count) == [1])
    #expect(log.due(at: time(184)).isEmpty)
    #expect(log.note(app: 0, error: .invalidPackageName, reason: "TopicDisallowed") != nil)
  }

  @Test("has bounded memory and output even if every request is wrong in a different way")
  func bounded() {
    var log = DeadLetterLog()
    let told = (0..<10_000).compactMap { log.note(app: nil, error: .invalidParameters, reason: "field\($0): unknown key") }
    #expect(told.count == DeadLetterLog.mostKinds + 1 && told.last?.reason == "other reasons")
    #expect(log.due(at: time(1)).map(\.count) == [10_000 - told.count])
  }

  @Test("reports the kinds in one order: by application, error and reason")
  func order() {
    var log = DeadLetterLog()
    for _ in 0..<2 {
      for app in [2, nil, 0, 1] as [Int?] {
        for error in [PushError.unavailable, .expired] {
          for reason in ["b", "a"] { _ = log.note(app: app, error: error, reason: reason) }
        }
      }
    }
    let report = log.due(at: time(62)).map { "\($0.kind.app ?? -1) \($0.kind.error) \($0.kind.reason)" }
    #expect(report.count == 16 && report == report.sorted())
  }

  @Test("leaves out the position in the body, which differs in every request, and words that may be tokens")
  func words() {
    let token = String(repeating: "0a", count: 32)
    #expect(DeadLetterLog.words(of: "notification.titel: unknown key at byte 97") == "notification.titel: unknown key")
    #expect(DeadLetterLog.words(of: "\(token): unknown key at byte 9") == "… unknown key")
    #expect(DeadLetterLog.words(of: "<html>\(token)</html>") == "<html>…</html>")
    #expect(DeadLetterLog.words(of: "fcm \(String(repeating: "a-B_", count: 40)):APA91b") == "fcm …")
    #expect(DeadLetterLog.words(of: String(repeating: "a ", count: 98) + token).hasSuffix("a …"))
    for plain in ["TooManyProviderTokenUpdates", "apns.payload.aps.content-available: must be 1", "HTTP 502"] {
      #expect(DeadLetterLog.words(of: plain) == plain)
    }
  }
}
