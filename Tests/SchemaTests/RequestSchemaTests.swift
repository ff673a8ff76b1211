import Foundation
import PushCore
import Testing

/// Checks that schema and parser accept the same requests.
@Suite struct RequestSchemaTests {
  static let file = "send-request.schema.json"

  static func parse(_ text: String) -> Rejection? {
    if case .failure(let rejection) = SendRequest.parse(Array(text.utf8)) { return rejection }
    return nil
  }

  /// Nil if schema and parser agree, or differ for a reason that the schema's description names.
  static func disagreement(_ text: String, verdict: String) -> String? {
    guard let rejection = parse(text) else { return verdict.isEmpty ? nil : "only the schema refuses: \(verdict)" }
    guard verdict.isEmpty, !RequestSchema.gaps.contains(where: { $0.isReason(rejection) }) else { return nil }
    return "only the parser refuses: \(rejection)"
  }

  @Test("the requests of the source documents are valid")
  func fixtures() throws {
    let folder = SchemaFiles.docs.appending(path: "../Tests/Fixtures/requests")
    let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
    let texts = try files.map { try String(contentsOf: $0, encoding: .utf8).replacing("\n", with: " ") }
    #expect(texts.count == 6)
    #expect(try SchemaJudge.shared.judge(texts.map { (Self.file, $0) }).allSatisfy(\.isEmpty))
  }

  @Test("schema and parser accept the same of 4,000 generated requests")
  func property() throws {
    var texts: [String] = []
    for seed in 0..<4_000 as Range<UInt64> {
      var generator = RequestGenerator(seed: seed)
      texts.append(generator.request().text)
    }
    let verdicts = try SchemaJudge.shared.judge(texts.map { (Self.file, $0) })
    for (seed, (text, verdict)) in zip(texts, verdicts).enumerated() {
      if let words = Self.disagreement(text, verdict: verdict) { Issue.record("seed \(seed): \(words)\n\(text)") }
    }
    let accepted = verdicts.count { $0.isEmpty }
    #expect((1_000...3_000).contains(accepted), "\(accepted) accepted: the generator is of no use when nearly all or none are")
  }

  static let bounds =
    [
      #"{"to":"x"}"#, #"{"to":null}"#, "{}", "[]", "5", #"{"to":"x","to_":1}"#, #"{"message":{"token":"x"}}"#,
      #"{"message":null}"#,
      #"{"message":{"token":"x"},"validate_only":null}"#,
      #"{"validate_only":true,"validateOnly":true,"message":{"token":"x"}}"#,
      #"{"validate_only":true,"validateOnly":null,"message":{"token":"x"}}"#, #"{"message":{"token":"/topics/a"}}"#,
      #"{"to":"x","time_to_live":-1}"#, #"{"to":"x","time_to_live":2419200}"#, #"{"to":"x","time_to_live":2419201}"#,
      #"{"to":"x","time_to_live":"2419200"}"#, #"{"to":"x","time_to_live":"2419201"}"#,
      #"{"to":"x","time_to_live":"02419200"}"#,
      #"{"to":"x","time_to_live":"00000002419200"}"#, #"{"to":"x","notification":{"badge":"2147483648"}}"#,
      #"{"to":"x","notification":{"badge":"2147483647"}}"#, #"{"to":"x","notification":{"badge":"\u0032"}}"#,
      #"{"to":"x","android":{"ttl":"2419200.9s"}}"#, #"{"to":"x","android":{"ttl":"2419200.0s"}}"#,
      #"{"to":"x","android":{"ttl":"000002419200s"}}"#, #"{"to":"x","android":{"ttl":"0000002419200s"}}"#,
      #"{"to":"x","android":{"ttl":"2419200.000000001s"}}"#, #"{"to":"x","android":{"ttl":"2419199.999999999s"}}"#,
      #"{"to":"x","android":{"ttl":"2419201s"}}"#,
      #"{"to":"x","android":{"ttl":"9s\n"}}"#,
      #"{"to":"x","data":{"from":1}}"#, #"{"to":"x","data":{"from\n":1}}"#, #"{"to":"x","data":{"froma":1}}"#,
      #"{"to":"\#(String(repeating: "a", count: 4096))"}"#, #"{"to":"\#(String(repeating: "a", count: 4097))"}"#,
      #"{"to":"/topics/\#(String(repeating: "a", count: 899))"}"#, #"{"to":"/topics/\#(String(repeating: "a", count: 900))"}"#,
      #"{"registration_ids":[\#(Array(repeating: #""x""#, count: 1000).joined(separator: ","))]}"#,
      #"{"registration_ids":[\#(Array(repeating: #""x""#, count: 1001).joined(separator: ","))]}"#, #"{"registration_ids":[]}"#,
      #"{"to":"x","apns":{"payload":{"aps":{"relevance-score":1e400}}}}"#,
      #"{"to":"x","apns":{"payload":{"aps":{"timestamp":9223372036854775807}}}}"#,
      #"{"to":"x","apns":{"payload":{"aps":{"timestamp":9223372036854775808}}}}"#,
      #"{"to":"x","apns":{"payload":{"aps":{"input-push-channel":"a.b"}}}}"#,
      #"{"to":"x","collapse_key":"\#(String(repeating: "k", count: 1024))"}"#,
      #"{"to":"x","collapse_key":"\#(String(repeating: "k", count: 1025))"}"#,
    ] + activities + days

  static let days = [
    "2026-02-28", "2026-02-29", "2028-02-29", "2000-02-29", "1900-02-29", "0000-02-29", "2004-02-29", "2096-02-29",
    "2100-02-29",
    "2026-04-30", "2026-04-31", "2026-12-31", "2026-12-32", "2026-01-00", "2026-00-01",
  ].map { #"{"to":"x","notification":{"event_time":"\#($0)T21:22:00Z"}}"# }

  /// Targets together with a live activity's token.
  static let activities =
    [
      #""to":"apns:00""#, #""to":"x""#, #""to":"pf1r~00000000000000000000000000""#, #""to":"pf1g~00000000000000000000000000""#,
      #""to":"/topics/a""#, #""to":"/all""#, #""registration_ids":["/all"]"#, #""to":"/users/a""#, #""to":"fcm:/topics/a""#,
      #""to":"apns-channel:bm8=""#,
      #""notification_key":"x""#, #""notification_key":"/users/a""#, #""condition":"'a' in topics""#,
      #""registration_ids":["x"]"#, #""registration_ids":["x","y"]"#, #""registration_ids":["/users/a"]"#,
      #""registration_ids":["/topics/"]"#, #""registration_ids":["fcm:/topics/a"]"#,
      #""to":"x","condition":null,"registration_ids":null"#,
    ].map { #"{\#($0),"apns":{"live_activity_token":"00"}}"# }
    + [
      #""token":"x""#, #""fid":"cXyZ0123456789_-AbCdEf""#, #""topic":"a""#, #""condition":"'a' in topics""#,
      #""token":"/users/a""#, #""token":"x","topic":null"#,
    ].map { #"{"message":{\#($0),"apns":{"liveActivityToken":"00"}}}"# }
    + [#""liveactivity""#, #""alert""#].map {
      #"{"to":"x","apns":{"live_activity_token":"00","headers":{"apns-push-type":\#($0)}}}"#
    }
    + [#"{"to":"/users/a","apns":{"live_activity_token":null}}"#, #"{"to":"/users/a","apns":null}"#]

  @Test("schema and parser agree at each limit")
  func agreement() throws {
    let verdicts = try SchemaJudge.shared.judge(Self.bounds.map { (Self.file, $0) })
    for (text, verdict) in zip(Self.bounds, verdicts) {
      if let words = Self.disagreement(text, verdict: verdict) { Issue.record("\(words)\n\(text)") }
    }
    #expect(verdicts.contains("") && verdicts.contains { !$0.isEmpty })
  }

  @Test("each listed gap exists: the schema accepts a request that the parser refuses")
  func gaps() throws {
    let wide = String(repeating: "雑", count: 1000)
    let samples = [
      #"{"to":"x","data":{"k":{"k":1,"k":2}}}"#, #"{"to":"x","data":{"k":"\#(wide)\#(wide)"}}"#,
      #"{"to":"x","collapse_key":"\#(wide)"}"#,
      #"{"condition":"'a' in topic"}"#, #"{"to":"x","notification":{"body_loc_args":"[1"}}"#,
      #"{"to":"x","notification":{"body":"b"},"apns":{"headers":{"apns-push-type":"background"}}}"#,
    ]
    #expect(samples.count == RequestSchema.gaps.count)
    let verdicts = try SchemaJudge.shared.judge(samples.map { (Self.file, $0) })
    for (index, (sample, verdict)) in zip(samples, verdicts).enumerated() {
      #expect(verdict.isEmpty)
      let rejection = try #require(Self.parse(sample))
      #expect(RequestSchema.gaps[index].isReason(rejection), "\(rejection)")
    }
  }
}
