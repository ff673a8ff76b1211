import PushCore
import Testing

/// The types of `aps`: APNs would accept a wrong one, and the device would drop it silently.
@Suite struct APSTypeTests {
  func aps(_ member: String, in aps: String = "aps") -> Result<SendRequest, Rejection> {
    request(#""apns":{"payload":{"\#(aps)":{\#(member)}}}"#)
  }

  static let good = [
    #""alert":"text""#, #""alert":{}"#, #""alert":{"title":"t","subtitle":"s","body":"b","launch-image":"l"}"#,
    #""alert":{"title-loc-key":"k","title-loc-args":["a"],"subtitle-loc-key":"k","subtitle-loc-args":[],"loc-key":"k","loc-args":["a","b"]}"#,
    #""alert":{"title":{"loc-key":"k","loc-args":["a"]},"body":{"loc-key":"k"},"sound":"s"}"#, #""alert":{"next-year":5}"#,
    #""badge":0"#, #""badge":2147483647"#, #""badge":3.0"#, #""sound":"default""#,
    #""sound":{"critical":1,"name":"n","volume":1}"#,
    #""sound":{"critical":0}"#, #""thread-id":"t""#, #""category":"c""#, #""content-available":1"#, #""content-available":0"#,
    #""mutable-content":1"#, #""target-content-id":"w""#, #""interruption-level":"passive""#, #""interruption-level":"active""#,
    #""interruption-level":"time-sensitive""#, #""interruption-level":"critical""#, #""relevance-score":0"#,
    #""relevance-score":1"#, #""event":"update","relevance-score":100"#, #""content-state":{},"relevance-score":-0.5"#,
    #""filter-criteria":"f""#, #""timestamp":1795209720"#, #""event":"start""#,
    #""event":"update""#,
    #""event":"end""#, #""content-state":{}"#, #""content-state":{"a":{"b":[null]}}"#, #""stale-date":1795209720.0"#,
    #""timestamp":0"#,
    #""dismissal-date":0"#, #""attributes-type":"A""#, #""attributes":{"a":null}"#, #""input-push-channel":"bm8gc3VjaA==""#,
    #""input-push-channel":"\#(String(repeating: "a", count: 256))""#,
    #""input-push-token":1"#, #""badge":null"#, #""alert":null"#, #""alert":{"title":null}"#, #""next-year":[1]"#,
  ]

  @Test("Apple's documented keys are accepted, null removes a key, and unknown keys pass", arguments: good)
  func accepted(member: String) {
    #expect(code(aps(member)) == nil, "\(reason(aps(member)))")
  }

  static let bad = [
    (#""alert":5"#, "alert: expected a string or an object, found a number"),
    (#""alert":{"title":5}"#, "alert.title: expected a string or an object, found a number"),
    (#""alert":{"body":{"loc-args":"x"}}"#, "alert.body.loc-args: expected an array of strings, found a string"),
    (#""alert":{"loc-args":["a",2]}"#, "alert.loc-args[1]: expected a string, found a number"),
    (#""alert":{"loc-args":"[]"}"#, "alert.loc-args: expected an array of strings, found a string"),
    (#""alert":{"launch-image":{}}"#, "alert.launch-image: expected a string, found an object"),
    (#""badge":"2""#, "badge: expected a number, found a string"),
    (#""badge":true"#, "badge: expected a number, found a boolean"),
    (#""badge":1.5"#, "badge: expected an integer from 0 to 2147483647"),
    (#""badge":-1"#, "badge: expected an integer from 0 to 2147483647"),
    (#""sound":1"#, "sound: expected a string or an object"),
    (#""sound":{"critical":true}"#, "sound.critical: expected a number, found a boolean"),
    (#""sound":{"volume":1.5}"#, "sound.volume: expected a number from 0 to 1"),
    (#""sound":{"name":5}"#, "sound.name: expected a string"), (#""thread-id":5"#, "thread-id: expected a string"),
    (#""category":[]"#, "category: expected a string"),
    (#""content-available":true"#, "content-available: expected a number, found a boolean"),
    (#""content-available":"1""#, "content-available: expected a number, found a string"),
    (#""content-available":2"#, "content-available: expected 0 or 1"),
    (#""mutable-content":"1""#, "mutable-content: expected a number"),
    (#""target-content-id":1"#, "target-content-id: expected a string"),
    (#""interruption-level":"loud""#, "interruption-level: expected one of passive, active, time-sensitive, critical"),
    (#""relevance-score":"0.5""#, "relevance-score: expected a number"),
    (#""relevance-score":1e999"#, "relevance-score: a number out of range"),
    (#""relevance-score":1.5"#, "relevance-score: expected a number from 0 to 1"),
    (#""relevance-score":-0.5"#, "relevance-score: expected a number from 0 to 1"),
    (#""timestamp":-1"#, "timestamp: expected a whole number of seconds, not negative"),
    (#""timestamp":1.5"#, "timestamp: expected a whole number of seconds, not negative"),
    (#""stale-date":1795209720.5"#, "stale-date: expected a whole number of seconds, not negative"),
    (#""dismissal-date":-1"#, "dismissal-date: expected a whole number of seconds, not negative"),
    (#""timestamp":1e999"#, "timestamp: expected a whole number of seconds, not negative"),
    (#""attributes-type":"""#, "attributes-type: must not be empty"),
    (#""input-push-channel":"""#, "input-push-channel: expected 1 to 256 characters of base64"),
    (#""input-push-channel":"a.b""#, "input-push-channel: expected 1 to 256 characters of base64"),
    (
      #""input-push-channel":"\#(String(repeating: "a", count: 257))""#,
      "input-push-channel: expected 1 to 256 characters of base64"
    ),
    (#""filter-criteria":1"#, "filter-criteria: expected a string"),
    (#""timestamp":"1795209720""#, "timestamp: expected a number"),
    (#""event":"begin""#, "event: expected one of start, update, end"),
    (#""content-state":[]"#, "content-state: expected an object"), (#""stale-date":"x""#, "stale-date: expected a number"),
    (#""dismissal-date":[]"#, "dismissal-date: expected a number"),
    (#""attributes-type":{}"#, "attributes-type: expected a string"),
    (#""attributes":"A""#, "attributes: expected an object"),
    (#""input-push-channel":1"#, "input-push-channel: expected a string"),
    (#""input-push-token":"1""#, "input-push-token: expected a number"),
  ]

  @Test("a wrong type of a known key is refused with its place", arguments: bad)
  func refused(member: String, rule: String) {
    #expect(code(aps(member)) == .invalidParameters)
    #expect(reason(aps(member)).hasPrefix("apns.payload.aps.\(rule)"), "\(reason(aps(member)))")
  }

  @Test(
    "a background push must show nothing, for any target, and its aps has only content-available",
    arguments: [
      (#""notification":{"title":"t"},"#, "", "apns.headers.apns-push-type: background, but the notification has"),
      (#""notification":{"badge":1},"#, #","payload":{}"#, "apns.headers.apns-push-type: background, but the notification has"),
      (
        "", #","payload":{"aps":{"thread-id":"t"}}"#,
        "apns.payload.aps.thread-id: a background push allows only content-available"
      ),
      ("", #","payload":{"aps":{"alert":"x"}}"#, "apns.payload.aps.alert: a background push allows only content-available"),
      ("", #","payload":{"aps":{"content-available":1,"badge":null},"k":1}"#, ""),
      (#""notification":{"title":"t"},"#, #","payload":{"aps":{"alert":null}}"#, ""),
      (#""notification":{"icon":"i"},"#, "", ""),
    ])
  func background(members: String, payload: String, words: String) throws {
    let apns = #""apns":{"headers":{"apns-push-type":"background"}\#(payload)}"#
    for body in [
      #"{"to":"fcm:/topics/a",\#(members)\#(apns)}"#, #"{"to":"apns:00",\#(members)\#(apns)}"#,
      #"{"message":{"token":"a:b",\#(members)\#(apns)}}"#,
    ] where !body.contains("message") || !(members.contains("badge") || members.contains("icon")) {
      let result = SendRequest.parse(Array(body.utf8))
      #expect(code(result) == (words.isEmpty ? nil : .invalidParameters))
      let place = words.contains("headers") ? #""background""# : #""\#(words.contains("thread-id") ? "thread-id" : "alert")""#
      guard !words.isEmpty, let range = body.range(of: place) else { continue }
      let offset = body.utf8.distance(from: body.startIndex, to: range.lowerBound)
      let path = body.contains("message") ? "message." : ""
      #expect(reason(result).hasPrefix(path + words) && reason(result).hasSuffix("at byte \(offset)"), "\(reason(result))")
    }
  }

  @Test("beside aps, a payload's keys are the app's own")
  func customKeys() {
    for (member, _) in Self.bad { #expect(code(aps(member, in: "other")) == nil) }
  }

  @Test("each key of the table is in Apple's spelling and has a case on both sides", arguments: APSKey.allCases)
  func keys(key: APSKey) {
    #expect(
      Self.good.contains { $0.hasPrefix(#""\#(key.wireName)":"#) }
        && Self.bad.contains { $0.0.hasPrefix(#""\#(key.wireName)":"#) })
  }
}
