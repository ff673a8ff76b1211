import PushCore
import Testing

/// Every code that a body alone can cause, and its reason.
@Suite struct RequestRefusalTests {
  @Test(
    "each refusal has its code and a reason that names place and rule",
    arguments: [
      ("", .invalidJSON, "the body is empty at byte 0"),
      ("{\"to\": \"x\"", .invalidJSON, "the body ends too early at byte 10"),
      ("{\"to\": \"x\"} {}", .invalidJSON, "expected the end, found '{' at byte 12"),
      ("{\"to\": \"x\", \"to\": \"y\"}", .invalidJSON, "duplicate key \"to\" at byte 12"),
      ("[]", .invalidJSON, "expected an object, found an array at byte 0"),
      ("null", .invalidJSON, "expected an object, found null at byte 0"),
      ("{}", .missingRegistration, "no target: one of to, registration_ids or condition is needed"),
      ("{\"to\": null}", .missingRegistration, "no target: one of to, registration_ids or condition is needed"),
      ("{\"to\": \"\"}", .missingRegistration, "to: empty at byte 7"),
      ("{\"condition\": \"\"}", .missingRegistration, "condition: empty at byte 14"),
      ("{\"registration_ids\": []}", .missingRegistration, "registration_ids: empty at byte 21"),
      ("{\"to\": 5}", .invalidParameters, "to: expected a string, found a number at byte 7"),
      ("{\"to\": \"a b\"}", .invalidRegistration, "to: a token has a byte beyond a-z A-Z 0-9 _ : . % - at byte 7"),
      (
        "{\"registration_ids\": \"x\"}", .invalidParameters,
        "registration_ids: expected an array of strings, found a string at byte 21"
      ),
      (
        "{\"registration_ids\": [\"x\", 5]}", .invalidParameters,
        "registration_ids[1]: expected a string, found a number at byte 27"
      ),
      ("{\"registration_ids\": [null]}", .invalidParameters, "registration_ids[0]: expected a string, found null at byte 22"),
      (
        "{\"to\": \"x\", \"registration_ids\": [\"y\"]}", .invalidParameters,
        "registration_ids: a second target, expected only one of to, registration_ids or condition at byte 32"
      ),
      (
        "{\"condition\": \"'a' in topics\", \"to\": \"\"}", .invalidParameters,
        "condition: a second target, expected only one of to, registration_ids or condition at byte 14"
      ),
      (
        "{\"to\": \"x\", \"notification_key\": \"x\"}", .invalidParameters,
        "notification_key: a second target, expected only one of to, registration_ids or condition at byte 32"
      ),
      (
        "{\"condition\": \"'a' in topics and\"}", .invalidParameters,
        "condition: expected && or || (byte 14 of the condition) at byte 14"
      ),
      ("{\"to\": \"x\", \"titel\": \"x\"}", .invalidParameters, "titel: unknown key at byte 12"),
      ("{\"to\": \"x\", \"message\": {}}", .invalidParameters, "message: unknown key at byte 12"),
      ("{\"to\": \"x\", \"priority\": \"HIGH\"}", .invalidParameters, "priority: expected \"high\" or \"normal\" at byte 24"),
      ("{\"to\": \"x\", \"priority\": 10}", .invalidParameters, "priority: expected \"high\" or \"normal\" at byte 24"),
      ("{\"to\": \"x\", \"time_to_live\": -1}", .invalidTTL, "time_to_live: expected an integer from 0 to 2419200 at byte 28"),
      ("{\"to\": \"x\", \"dry_run\": 1}", .invalidParameters, "dry_run: expected a boolean, found a number at byte 23"),
      (
        "{\"to\": \"x\", \"notification\": \"hi\"}", .invalidParameters,
        "notification: expected an object, found a string at byte 28"
      ),
      (
        "{\"to\": \"x\", \"notification\": {\"title\": 5}}", .invalidParameters,
        "notification.title: expected a string, found a number at byte 38"
      ),
      (
        "{\"to\": \"x\", \"notification\": {\"colour\": \"\"}}", .invalidParameters,
        "notification.colour: unknown key at byte 29: did you mean color?"
      ),
      (
        "{\"to\": \"x\", \"notification\": {\"color\": \"#12345g\"}}", .invalidParameters,
        "notification.color: expected #rrggbb at byte 38"
      ),
      ("{\"to\": \"x\", \"data\": []}", .invalidParameters, "data: expected an object, found an array at byte 20"),
      ("{\"to\": \"x\", \"data\": {\"from\": \"y\"}}", .invalidDataKey, "data.from: a reserved key at byte 21"),
      (
        "{\"to\": \"x\", \"restricted_package_name\": \"a b\"}", .invalidPackageName,
        "restricted_package_name: not the name of a package at byte 39"
      ),
    ] as [(String, PushError, String)])
  func refused(body: String, code: PushError, reason: String) {
    guard case .failure(let rejection) = parse(body) else {
      Issue.record("accepted")
      return
    }
    #expect(rejection == Rejection(code, reason))
  }

  @Test("reserved data keys are refused, similar ones aren't")
  func dataKeys() {
    func key(_ name: String) -> PushError? { code(request("\"data\": {\"\(name)\": \"v\"}")) }
    for name in ["from", "message_type", "google", "google.ttl", "googleX", "gcm", "gcm.x", "gcmx", "fr\\u006fm", "\\u0067cm"] {
      #expect(key(name) == .invalidDataKey)
    }
    for name in [
      "From", "fromm", "xfrom", "message_typ", "message_types", "goog", "gc", "GCM", "collapse_key", "notification", "aps", "",
    ] {
      #expect(key(name) == nil)
    }
  }

  @Test("booleans are booleans, or the words that GCM clients send instead")
  func booleans() throws {
    for field in ["delay_while_idle", "content_available", "mutable_content", "dry_run"] {
      for good in ["true", "false", "\"true\"", "\"false\"", "null"] { #expect(code(request("\"\(field)\": \(good)")) == nil) }
      for bad in ["0", "1", "\"1\"", "\"TRUE\"", "\"\"", "[]", "{}"] {
        #expect(code(request("\"\(field)\": \(bad)")) == .invalidParameters)
      }
    }
    #expect(try request(#""content_available": "true""#).get().contentAvailable)
    #expect(try !request(#""content_available": "false""#).get().contentAvailable)
  }

  @Test("localisation arguments may be an array, a string that holds one, or null")
  func arguments() throws {
    func written(_ value: String) throws -> String? {
      let request = try request(#""notification": {"body_loc_args": \#(value)}"#).get()
      var output: [UInt8] = []
      return request.appendArguments(.bodyLocArgs, to: &output) ? String(decoding: output, as: UTF8.self) : nil
    }
    #expect(try written(#"["雑談部屋", 2, 1.50]"#) == #"["雑談部屋","2","1.50"]"#)
    #expect(try written(#""[\"雑談部屋\", 2]""#) == #"["雑談部屋","2"]"#)
    #expect(try written("[]") == "[]")
    #expect(try written("null") == nil)
    for bad in ["5", "true", "{}", "[null]", "[true]", "[[]]", "\"\"", "\"x\"", "\"{}\"", "\"[null]\"", "\"[1,]\""] {
      #expect(code(request(#""notification": {"body_loc_args": \#(bad)}"#)) == .invalidParameters)
    }
  }

  @Test("sound is a name or Apple's dictionary")
  func sound() {
    func sound(_ value: String) -> PushError? { code(request(#""notification": {"sound": \#(value)}"#)) }
    for good in [
      #""default""#, #""x.caf""#, "{}", #"{"critical": 1, "name": "a", "volume": 0.5}"#, #"{"critical": true, "volume": 1}"#,
    ] {
      #expect(sound(good) == nil)
    }
    for bad in [
      "5", "[]", #"{"loud": 1}"#, #"{"critical": 2}"#, #"{"volume": 1.1}"#, #"{"volume": -0.1}"#, #"{"volume": 1e999}"#,
      #"{"name": 5}"#,
    ] {
      #expect(sound(bad) == .invalidParameters)
    }
  }

  @Test("notification keys that FCM added later have their FCM v1 rules")
  func laterKeys() {
    func key(_ members: String) -> PushError? { code(request("\"notification\": {\(members)}")) }
    #expect(
      key(#""image": "https://example.com/a.png", "ticker": "t", "sticky": true, "local_only": "false", "default_sound": true"#)
        == nil)
    #expect(
      key(#""event_time": "2026-11-20T21:22:00.123Z", "notification_priority": "PRIORITY_HIGH", "visibility": "SECRET""#) == nil
    )
    #expect(
      key(
        #""notification_count": 3, "subtitle": "s", "subtitle_loc_key": "k", "subtitle_loc_args": ["a"], "android_channel_id": "c""#
      ) == nil)
    for day in ["2028-02-29", "2000-02-29", "2026-02-28", "2026-12-31", "2026-04-30"] {
      #expect(key(#""event_time": "\#(day)T21:22:00Z""#) == nil)
    }
    for bad in [
      #""event_time": "2026-11-20 21:22:00Z""#, #""event_time": "2026-13-20T21:22:00Z""#,
      #""event_time": "2026-02-29T21:22:00Z""#, #""event_time": "2026-04-31T21:22:00Z""#,
      #""event_time": "1900-02-29T21:22:00Z""#,
      #""event_time": "2026-01-00T21:22:00Z""#, #""visibility": "HIDDEN""#,
      #""sticky": 1"#,
      #""notification_count": -1"#, #""channel_id": "c""#, #""titleLocKey": "k""#,
    ] {
      #expect(key(bad) == .invalidParameters)
    }
  }

  @Test("a malformed id in a list costs only its own entry")
  func listEntries() throws {
    let body = #"{"registration_ids": ["x", "", "a b", "/topics/t u", "\#(apnsToken)", "apns:0", "x"]}"#
    guard case .list(let targets) = try parse(body).get().targets else {
      Issue.record("not a list")
      return
    }
    #expect(targets.count == 7)
    #expect(targets[0] == .fcm(token: [0x78]))
    #expect(targets[6] == targets[0])
    #expect(targets[4] == .apns(token: Array(apnsToken.utf8)[...]))
    for index in [1, 2, 3, 5] {
      guard case .invalid(let rejection) = targets[index] else {
        Issue.record("entry \(index) is \(targets[index])")
        continue
      }
      #expect(rejection.code == .invalidRegistration)
      #expect(rejection.reason.hasPrefix("registration_ids[\(index)]: "))
    }
  }

  @Test("a reason never repeats a target", arguments: TargetTests.hostile)
  func reasonsAreSafe(target: String) {
    var body = Array(#"{"to":"#.utf8)
    body.appendJSONString(Array(target.utf8))
    body.append(UInt8(ascii: "}"))
    let result = SendRequest.parse(body)
    #expect(code(result) == .invalidRegistration)
    #expect(reason(result).utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F })
    #expect(target.utf8.count < 12 || !reason(result).contains(target))
  }

  @Test("codes are stable: their words and numbers are public")
  func codes() {
    #expect(
      PushError.allCases.map(\.rawValue) == [
        "InvalidJSON", "MissingRegistration", "InvalidRegistration", "NotRegistered", "InvalidPackageName", "MismatchSenderId",
        "MessageTooBig", "InvalidDataKey", "InvalidTtl", "InvalidParameters", "InvalidApnsCredential", "Unavailable",
        "InternalServerError", "DeviceMessageRateExceeded", "TopicsMessageRateExceeded", "Expired", "Cancelled", "NotAllowed",
        "NothingForPlatform", "Unknown", "Collapsed",
      ])
    #expect(PushError.allCases.map(\.code) == Array(1...21))
    for error in PushError.allCases { #expect(PushError(code: error.code) == error) }
    #expect(PushError(code: 0) == nil && PushError(code: 22) == nil)
  }
}
