import Foundation
import Testing

@testable import PushCore

/// Each error code of the server reference's table that a request alone can cause, on both sides of every limit: these requests
/// get it, and no others.
@Suite struct ErrorCodeTests {
  struct Row: CustomTestStringConvertible {
    let what: String
    let body: String
    /// Nil: accepted, and translated for the platform of its target.
    let code: PushError?

    var testDescription: String { "\(what): \(code?.rawValue ?? "accepted")" }

    init(_ what: String, _ body: String, _ code: PushError?) {
      self.what = what
      self.body = body
      self.code = code
    }
  }

  static func to(_ target: String, _ members: String = "") -> String {
    #"{"to":"\#(target)"\#(members.isEmpty ? "" : ",")\#(members)}"#
  }

  static func text(_ bytes: Int, _ unit: String = "x") -> String {
    String(repeating: unit, count: bytes / unit.utf8.count) + String(repeating: "x", count: bytes % unit.utf8.count)
  }

  static func ids(_ count: Int) -> String {
    #"{"registration_ids":[\#((0..<count).map { #""t\#($0)""# }.joined(separator: ","))]}"#
  }

  static func topics(_ count: Int) -> String {
    #"{"condition":"\#((0..<count).map { "'t\($0)' in topics" }.joined(separator: " || "))"}"#
  }

  /// An APNs payload of exactly so many bytes, which come from the block: `{"aps":{},"k":"…"}`, without the limits of `data`.
  static func payload(_ bytes: Int, type: String, unit: String = "x") -> String {
    let frame = type == "alert" ? #"{"aps":{"alert":"a"},"k":""}"# : #"{"aps":{},"k":""}"#
    let aps = type == "alert" ? #""aps":{"alert":"a"},"# : ""
    return to(
      apnsToken,
      #""apns":{"headers":{"apns-push-type":"\#(type)"},"payload":{\#(aps)"k":"\#(text(bytes - frame.utf8.count, unit))"}}"#)
  }

  static let rows: [Row] =
    [
      // MissingRegistration
      Row("no target", #"{"data":{"k":"v"}}"#, .missingRegistration),
      Row("a target that is null", #"{"to":null}"#, .missingRegistration),
      Row("an empty target", #"{"to":""}"#, .missingRegistration),
      Row("an empty list", #"{"registration_ids":[]}"#, .missingRegistration),
      Row("a target", to("x"), nil),
      Row("two targets", #"{"to":"x","condition":"'a' in topics"}"#, .invalidParameters),
      Row("a second target that is null", #"{"to":"x","condition":null,"registration_ids":null}"#, nil),
      // InvalidRegistration
      Row("a token with a space", to("a b"), .invalidRegistration),
      Row("a token that climbs", to("../3/device"), .invalidRegistration),
      Row("an odd number of digits", to("apns:123"), .invalidRegistration),
      Row("an even number of digits", to("apns:1234"), nil),
      Row("a topic with a space", to("/topics/a b"), .invalidRegistration), Row("a topic", to("/topics/a-b"), nil),
      Row("899 characters of a topic", to("/topics/\(text(899))"), nil),
      Row("900 characters of a topic", to("/topics/\(text(900))"), .invalidRegistration),
      Row("a token of 4096", to("fcm:\(text(4096))"), nil),
      Row("a token of 4097", to("fcm:\(text(4097))"), .invalidRegistration),
      Row("one bad id among good ones costs itself only", #"{"registration_ids":["x","a b"]}"#, nil),
      // InvalidPackageName
      Row("a package with a space", to("x", #""restricted_package_name":"a b""#), .invalidPackageName),
      Row("a package", to("x", #""restricted_package_name":"a.b_c-D9""#), nil),
      Row("255 characters of a package", to("x", #""restricted_package_name":"\#(text(255))""#), nil),
      Row("256 characters of a package", to("x", #""restricted_package_name":"\#(text(256))""#), .invalidPackageName),
      Row("a package that is a number", to("x", #""restricted_package_name":5"#), .invalidParameters),
      // InvalidDataKey
      Row("from", to("x", #""data":{"from":"v"}"#), .invalidDataKey), Row("fromage", to("x", #""data":{"fromage":"v"}"#), nil),
      Row("gcm", to("x", #""data":{"gcm":"v"}"#), .invalidDataKey), Row("gc", to("x", #""data":{"gc":"v"}"#), nil),
      Row("googlex", to("x", #""data":{"googlex":"v"}"#), .invalidDataKey), Row("goog", to("x", #""data":{"goog":"v"}"#), nil),
      Row("Google", to("x", #""data":{"Google":"v"}"#), nil),
      Row("message_type", to("x", #""data":{"message_type":"v"}"#), .invalidDataKey),
      Row("message_types", to("x", #""data":{"message_types":"v"}"#), nil),
      Row("collapse_key in data", to("x", #""data":{"collapse_key":"v"}"#), nil),
      Row("gcm inside a value", to("x", #""data":{"k":{"gcm":"v"}}"#), nil),
      Row("aps on an iPhone", to(apnsToken, #""data":{"aps":"v"}"#), .invalidDataKey),
      Row("aps on Android", to("x", #""data":{"aps":"v"}"#), nil),
      // InvalidTtl
      Row("ttl -1", to("x", #""time_to_live":-1"#), .invalidTTL), Row("ttl 0", to("x", #""time_to_live":0"#), nil),
      Row("ttl 2419200", to("x", #""time_to_live":2419200"#), nil),
      Row("ttl 2419201", to("x", #""time_to_live":2419201"#), .invalidTTL),
      Row("ttl 0.5", to("x", #""time_to_live":0.5"#), .invalidTTL),
      Row("an icon for an iPhone", to("apns:00", #""notification":{"icon":"i"}"#), .nothingForPlatform),
      Row("ttl as a boolean", to("x", #""time_to_live":true"#), .invalidTTL),
      Row("ttl null", to("x", #""time_to_live":null"#), nil),
      Row("ttl in a string", to("x", #""time_to_live":"2419200""#), nil),
      Row("too long a ttl in a string", to("x", #""time_to_live":"2419201""#), .invalidTTL),
      Row("android.ttl of four weeks", to("x", #""android":{"ttl":"2419200s"}"#), nil),
      Row("android.ttl of a second more", to("x", #""android":{"ttl":"2419201s"}"#), .invalidTTL),
      // InvalidParameters
      Row("1000 ids", ids(1000), nil), Row("1001 ids", ids(1001), .invalidParameters), Row("1 id", ids(1), nil),
      Row("five topics in a condition", topics(5), nil), Row("six topics", topics(6), .invalidParameters),
      Row("an unknown key", to("x", #""colour":"red""#), .invalidParameters),
      Row("a wrong type", to("x", #""notification":{"title":5}"#), .invalidParameters),
      Row("a wrong word", to("x", #""priority":"urgent""#), .invalidParameters),
      Row("1024 bytes of collapse key", to("x", #""collapse_key":"\#(text(1024, "雑"))""#), nil),
      Row("1025 bytes of collapse key", to("x", #""collapse_key":"\#(text(1025, "雑"))""#), .invalidParameters),
      Row("64 bytes of apns-collapse-id", to(apnsToken, #""apns":{"headers":{"apns-collapse-id":"\#(text(64, "é"))"}}"#), nil),
      Row(
        "65 bytes of apns-collapse-id in fewer characters",
        to(apnsToken, #""apns":{"headers":{"apns-collapse-id":"\#(text(65, "é"))"}}"#), .invalidParameters),
      Row("the largest badge", to("x", #""notification":{"badge":2147483647}"#), nil),
      Row("a larger badge", to("x", #""notification":{"badge":2147483648}"#), .invalidParameters),
      // InvalidJSON
      Row("a duplicate key", #"{"to":"x","to":"x"}"#, .invalidJSON), Row("half an object", #"{"to":"x""#, .invalidJSON),
      Row("an array", "[]", .invalidJSON),
      Row("31 levels of data", to("x", #""data":{"k":\#(text(30, "["))\#(text(30, "]"))}"#), nil),
      Row("33 levels", to("x", #""data":{"k":\#(text(31, "["))\#(text(31, "]"))}"#), .invalidJSON),
    ]
    // MessageTooBig: GS-004, GS-005, and what the providers take.
    + ["x", "部", "é"].flatMap { unit in
      [
        Row("2048 bytes of notification", to("x", #""notification":{"body":"\#(text(2044, unit))"}"#), nil),
        Row("2049 bytes of notification", to("x", #""notification":{"body":"\#(text(2045, unit))"}"#), .messageTooBig),
        Row("4096 bytes of data", to("x", #""data":{"k":"\#(text(4095, unit))"}"#), nil),
        Row("4097 bytes of data", to("x", #""data":{"k":"\#(text(4096, unit))"}"#), .messageTooBig),
        Row("2048 bytes of a topic's data", to("/topics/a", #""data":{"k":"\#(text(2047, unit))"}"#), nil),
        Row("2049 bytes of a topic's data", to("/topics/a", #""data":{"k":"\#(text(2048, unit))"}"#), .messageTooBig),
        Row("an alert's payload of 4096", payload(4096, type: "alert", unit: unit), nil),
        Row("an alert's payload of 4097", payload(4097, type: "alert", unit: unit), .messageTooBig),
        Row("a call's payload of 5120", payload(5120, type: "voip", unit: unit), nil),
        Row("a call's payload of 5121", payload(5121, type: "voip", unit: unit), .messageTooBig),
      ]
    }

  @Test("each code occurs exactly for the requests that deserve it", arguments: rows)
  func earned(row: Row) {
    #expect(Self.code(of: row.body) == row.code)
  }

  /// Parsed, and translated for each platform that its target names (both for one that the registry would have to resolve).
  static func code(of body: String) -> PushError? {
    do throws(Rejection) {
      let request = try SendRequest(parsing: Array(body.utf8))
      if case .one(.apns) = request.targets {
        _ = try apns(request)
      } else if case .one(.fcm) = request.targets {
        _ = try fcm(request)
      } else {
        _ = try apns(request)
        _ = try fcm(request)
      }
      return nil
    } catch {
      return error.code
    }
  }

  @Test("no code that a request can get is left out")
  func complete() {
    /// Caused by later events: a provider's answer, a registry look-up, the clock.
    let later: Set<PushError> = [
      .notRegistered, .mismatchSenderID, .invalidAPNsCredential, .unavailable, .internalServerError, .deviceMessageRateExceeded,
      .topicsMessageRateExceeded, .expired, .cancelled, .notAllowed, .unknown, .collapsed,
    ]
    #expect(Set(Self.rows.compactMap(\.code)) == Set(PushError.allCases).subtracting(later))
  }
}
