import Foundation
import TestSupport
import Testing

@testable import PushCore

/// Checks the written outcomes against the schemas.
@Suite struct OutcomeSchemaTests {
  static let feedback = "feedback.schema.json"
  static let result = "result.schema.json"
  static let dead = "dead-letter-headers.schema.json"

  static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

  static func bytes(_ random: inout SeededGenerator) -> [UInt8] {
    (0..<Int.random(in: 0...12, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
  }

  static func written(seed: UInt64) throws -> [(schema: String, text: String)] {
    var random = SeededGenerator(seed: seed)
    let code = PushError.allCases[Int(seed) % PushError.allCases.count]
    let event = FeedbackEvent(
      event: FeedbackEvent.Event.allCases[Int(seed % 5)], app: bytes(&random), platform: seed % 2 == 0 ? .apns : .fcm,
      token: bytes(&random), newToken: seed % 5 == 3 ? bytes(&random) : nil,
      registration: seed % 4 == 0 ? bytes(&random) : nil, reason: text(bytes(&random)), status: 410,
      invalidSince: seed % 3 == 0 ? Int64.random(in: 0...4_000_000_000_000, using: &random) : nil, messageID: bytes(&random),
      observedAt: Int64.random(in: 0...4_000_000_000_000, using: &random),
      details: seed % 7 == 0
        ? .init()
        : .init(
          environment: "sandbox", sender: bytes(&random), installation: bytes(&random), user: bytes(&random),
          apnsID: bytes(&random), kind: "voip"))
    var losses: LossReport? = LossReport()
    let request = try SendRequest.parse(
      Array(
        #"{"to":"x","priority":"high","delay_while_idle":true,"notification":{"badge":"1","icon":"i"},"data":{"a":1}}"#.utf8)
    ).get()
    let context = TranslationContext(now: 0, deadline: 60_000, messageID: [])
    _ = try APNsTemplate(request, settings: APNsSettings(topic: "a.b"), context: context, report: &losses)
    var report = DryRunReport()
    if seed % 2 == 0 { report[.apns] = losses }
    if seed % 3 == 0 { report[.fcm] = LossReport() }
    let outcome = SendResult(
      messageID: bytes(&random), app: bytes(&random),
      targets: [
        .accepted(id: bytes(&random)), .failed(code), .failed(code, reason: text(bytes(&random))),
        .accepted(id: [], registration: bytes(&random), uniqueID: bytes(&random)),
      ])
    let letter = DeadLetter(
      error: code, reason: text(bytes(&random)) + String(repeating: "é", count: Int(seed) * 5),
      status: seed % 2 == 0 ? 410 : nil,
      attempts: Int(seed), failedAt: Int64.random(in: 0...4_000_000_000_000, using: &random))
    return [
      (feedback, text(event.json())), (result, text(outcome.json())), (result, text(outcome.json(report: report))),
      (result, text(SendResult(messageID: [], app: [], targets: []).json())),
      (
        "fan-out-result.schema.json",
        text(
          SendResult.fanOut(
            messageID: bytes(&random), success: Int(seed), failure: 1_000_000, unknown: Int(seed % 3),
            failed: seed % 2 == 0 ? [] : [bytes(&random)],
            failures: [.init(platform: seed % 2 == 0 ? .apns : nil, error: code, devices: Int64(seed) + 1)]))
      ),
      (dead, headers(letter).text),
    ]
  }

  static func headers(_ letter: DeadLetter) -> JSONValue {
    .object(
      letter.headers.map { name, value in
        switch value {
        case .text(let text): (name, .string(Self.text(text)))
        case .number(let number): (name, .number(String(number)))
        }
      })
  }

  @Test("every outcome that is written is valid")
  func written() throws {
    let cases = try (0..<60 as Range<UInt64>).flatMap(Self.written)
    for ((schema, text), verdict) in zip(cases, try SchemaJudge.shared.judge(cases)) {
      #expect(verdict.isEmpty, "\(schema): \(verdict)\n\(text)")
    }
  }

  @Test("an answer for a token is feedback with one of the schema's events")
  func events() {
    let reactions =
      APNsReply.rows.map(\.reaction) + FCMReply.errorCodeRows.map(\.reaction) + FCMReply.statusWordRows.map(\.reaction)
    let codes = reactions.filter(\.isFeedback).compactMap(\.code)
    #expect(codes.allSatisfy { FeedbackEvent.Event(rawValue: $0.rawValue) != nil })
  }

  private static let optional: Set = [
    "report", "new_token", "environment", "sender", "installation", "user", "apns_id", "kind", "failed_registration_ids",
    "unknown", "failures",
  ]

  @Test("the schemas refuse outcomes with missing or wrong members")
  func refused() throws {
    let cases: [(schema: String, text: String)] = try Self.written(seed: 0).flatMap { schema, text in
      let object = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any] ?? [:]
      let required =
        schema == Self.dead ? object.keys.filter { $0 != "x-push-status" } : object.keys.filter { !Self.optional.contains($0) }
      return try required.flatMap { name in
        try [object.filter { $0.key != name }, object.merging([name: ["no": "such"]]) { $1 }].map {
          (schema: schema, text: String(decoding: try JSONSerialization.data(withJSONObject: $0), as: UTF8.self))
        }
      }
    }
    for ((schema, text), verdict) in zip(cases, try SchemaJudge.shared.judge(cases)) {
      #expect(!verdict.isEmpty, "\(schema): \(text)")
    }
  }
}
