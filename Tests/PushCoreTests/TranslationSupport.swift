import Foundation
import Testing

@testable import PushCore

/// 2026-11-20T21:22:00.123Z
let testNow: Int64 = 1_795_209_720_123

func utf8(_ bytes: some Sequence<UInt8>) -> String { String(decoding: Array(bytes), as: UTF8.self) }

func fixture(_ name: String) throws -> String {
  let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
  return try String(contentsOf: folder.appendingPathComponent("Fixtures/\(name)"), encoding: .utf8)
}

/// A request with its `to` replaced.
func fixture(_ name: String, to target: String) throws -> String {
  let text = try fixture("requests/\(name)")
  return text.replacing(/"to": "[^"]*"/, with: "\"to\": \"\(target)\"")
}

func parsed(_ body: String, limits: RequestLimits = RequestLimits()) throws -> SendRequest {
  try SendRequest.parse(Array(body.utf8), limits: limits).get()
}

/// Members of a request besides its target.
func accepted(_ members: String, to target: String = apnsToken) throws -> SendRequest {
  try parsed(#"{"to":"\#(target)"\#(members.isEmpty ? "" : ",")\#(members)}"#)
}

/// As published a minute ago with the request's own lifetime.
func context(_ request: SendRequest) -> TranslationContext {
  let published = testNow - 60_000
  let lifetime = Int64(request.timeToLive ?? request.androidTimeToLive ?? RequestLimits.longestTimeToLive)
  return TranslationContext(
    now: testNow, deadline: published + lifetime * 1000, messageID: Array("m-1".utf8), published: published)
}

func apns(_ request: SendRequest, settings: APNsSettings = APNsSettings(topic: "com.example.app")) throws(Rejection) -> APNsPush
{
  var report: LossReport?
  return try APNsTemplate(request, settings: settings, context: context(request), report: &report)
    .stamp(token: Array(apnsToken.utf8)[...])
}

func fcm(_ request: SendRequest, token: String = "T:1") throws(Rejection) -> String {
  var report: LossReport?
  return utf8(
    try FCMTemplate(request, context: context(request), report: &report).body(token: Array(token.utf8)[...]))
}

/// The template of a request for web push, as if published a minute ago.
func webpush(_ request: SendRequest, standard: Priority = .normal) throws(Rejection) -> WebPushTemplate {
  var report: LossReport?
  return try WebPushTemplate(request, standard: standard, context: context(request), report: &report)
}

func losses(_ request: SendRequest, _ platform: Platform) throws -> [String] {
  var report: LossReport? = LossReport()
  switch platform {
  case .apns:
    _ = try APNsTemplate(
      request, settings: APNsSettings(topic: "com.example.app"), context: context(request),
      isBroadcast: request.targets.isChannel, report: &report
    )
  case .fcm: _ = try FCMTemplate(request, context: context(request), report: &report)
  case .webpush:
    _ = try WebPushTemplate(request, context: context(request), report: &report)
  }
  return report?.entries.map { "\($0.rule) \($0.field) \($0.action.rawValue): \($0.words)" } ?? []
}

/// An FCM message with the request's translation for Apple devices: its APNs headers, and a background push's `aps`. Unchanged
/// if there is nothing for them.
func withApple(_ message: String, _ request: SendRequest) throws -> String {
  let push: APNsPush
  do throws(Rejection) { push = try apns(request) } catch {
    #expect(error.code == .nothingForPlatform || error.code == .invalidDataKey)
    return message
  }
  let id = push.collapseID.map { #","apns-collapse-id":"\#(utf8($0))""# } ?? ""
  let headers =
    #""headers":{"apns-push-type":"\#(utf8(push.pushType))","apns-priority":"\#(push.priority)","apns-expiration":"\#(push.expiration)"\#(id)}"#
  if message.contains(#""apns":{"#) { return message.replacingOccurrences(of: #""apns":{"#, with: #""apns":{\#(headers),"#) }
  let payload = push.template.pushType == .background ? #","payload":{"aps":{"content-available":1}}"# : ""
  let block = #","apns":{\#(headers)\#(payload)}"#
  // After Android's, before what follows it.
  guard let next = message.range(of: #","webpush":"#) ?? message.range(of: #","token":"#) else { return message + block }
  return message.replacingCharacters(in: next.lowerBound..<next.lowerBound, with: block)
}

extension Targets {
  var isChannel: Bool { if case .one(.channel) = self { true } else { false } }
}

extension APNsPush {
  /// All headers in one line, for comparing.
  var headers: String {
    "\(utf8(topic)) \(utf8(pushType)) \(priority) \(expiration) \(collapseID.map(utf8) ?? "-")"
  }
}
