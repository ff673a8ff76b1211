import Foundation
import Testing

@testable import PushCore

@Suite struct APNsTranslationTests {
  static let payloads: [(String, String, String)] = [
    (
      "GS-008 a notification becomes an alert", #""notification":{"title":"t","body":"b"}"#,
      #"{"aps":{"alert":{"title":"t","body":"b"}}}"#
    ),
    (
      "GS-009 data with content_available is a background push with nothing else in aps",
      #""content_available":true,"data":{"k":"v"}"#, #"{"aps":{"content-available":1},"k":"v"}"#
    ),
    ("GS-010 data alone is sent as a background push", #""data":{"k":"v"}"#, #"{"aps":{"content-available":1},"k":"v"}"#),
    ("nothing at all is a background push", "", #"{"aps":{"content-available":1}}"#),
    (
      "a notification of which iOS shows nothing is a background push where there is data",
      #""notification":{"icon":"i","tag":"t"},"data":{"k":"v"}"#, #"{"aps":{"content-available":1},"k":"v"}"#
    ),
    (
      "a push to a device's management has no aps", #""apns":{"headers":{"apns-push-type":"mdm"},"payload":{"mdm":"MAGIC"}}"#,
      #"{"mdm":"MAGIC"}"#
    ),
    (
      "nor has one to a file provider", #""data":{"domain":"d"},"apns":{"headers":{"apns-push-type":"fileprovider"}}"#,
      #"{"domain":"d"}"#
    ),
    (
      "unless the request has something for it",
      #""notification":{"badge":1},"apns":{"headers":{"apns-push-type":"fileprovider"},"payload":{"aps":{}}}"#,
      #"{"aps":{"badge":1}}"#
    ),
    (
      "GS-023 both parts stay one push", #""notification":{"body":"b"},"data":{"k":"v"}"#,
      #"{"aps":{"alert":{"body":"b"}},"k":"v"}"#
    ),
    (
      "GS-025 names and order of data are kept", #""data":{"z":"1","a b":"2","é":"3"}"#,
      #"{"aps":{"content-available":1},"z":"1","a b":"2","é":"3"}"#
    ),
    (
      "F-REF other types of data become strings", #""data":{"n":5,"f":1.50,"t":true,"o":{"a":[1,"x\""]},"e":[]}"#,
      #"{"aps":{"content-available":1},"n":"5","f":"1.50","t":"true","o":"{\"a\":[1,\"x\\\"\"]}","e":"[]"}"#
    ),
    ("a null in data is no value", #""data":{"a":null,"b":"x"}"#, #"{"aps":{"content-available":1},"b":"x"}"#),
    (
      "GS-091 localisation keys",
      ##""notification":{"title_loc_key":"T","title_loc_args":["a"],"body_loc_key":"B","body_loc_args":["b","c"]}"##,
      #"{"aps":{"alert":{"title-loc-key":"T","title-loc-args":["a"],"loc-key":"B","loc-args":["b","c"]}}}"#
    ),
    (
      "GS-092 null arguments are absent ones", #""notification":{"body_loc_key":"B","body_loc_args":null}"#,
      #"{"aps":{"alert":{"loc-key":"B"}}}"#
    ),
    (
      "GS-093 a string that holds an array is the array", #""notification":{"body_loc_key":"B","body_loc_args":"[\"x\", 2]"}"#,
      #"{"aps":{"alert":{"loc-key":"B","loc-args":["x","2"]}}}"#
    ),
    (
      "GS-095 numbers among the arguments become strings", #""notification":{"body_loc_key":"B","body_loc_args":["x",2]}"#,
      #"{"aps":{"alert":{"loc-key":"B","loc-args":["x","2"]}}}"#
    ),
    (
      "an empty array stays one", #""notification":{"body_loc_key":"B","body_loc_args":[]}"#,
      #"{"aps":{"alert":{"loc-key":"B","loc-args":[]}}}"#
    ),
    (
      "subtitles", #""notification":{"subtitle":"s","subtitle_loc_key":"k","subtitle_loc_args":["a"]}"#,
      #"{"aps":{"alert":{"subtitle":"s","subtitle-loc-key":"k","subtitle-loc-args":["a"]}}}"#
    ),
    ("GS-096 a badge's string becomes a number", #""notification":{"badge":"2"}"#, #"{"aps":{"badge":2}}"#),
    ("GS-096 zero clears the badge", #""notification":{"badge":"0"}"#, #"{"aps":{"badge":0}}"#),
    ("a badge may be a number already", #""notification":{"badge":7}"#, #"{"aps":{"badge":7}}"#),
    ("GS-097 a sound", #""notification":{"sound":"bell.aif"}"#, #"{"aps":{"sound":"bell.aif"}}"#),
    (
      "a critical sound is a dictionary", #""notification":{"sound":{"critical":1,"name":"a","volume":0.5}}"#,
      #"{"aps":{"sound":{"critical":1,"name":"a","volume":0.5}}}"#
    ),
    (
      "GS-101, GS-106 click_action is the category", #""notification":{"body":"b","click_action":"N"}"#,
      #"{"aps":{"alert":{"body":"b"},"category":"N"}}"#
    ),
    (
      "GS-098, GS-099, GS-103 Android's keys are left out",
      ##""notification":{"body":"b","icon":"i","color":"#ffffff","tag":"t","android_channel_id":"c"}"##,
      #"{"aps":{"alert":{"body":"b"}}}"#
    ),
    (
      "content_available beside an alert", #""content_available":true,"notification":{"body":"b"}"#,
      #"{"aps":{"alert":{"body":"b"},"content-available":1}}"#
    ),
    (
      "mutable_content needs an alert", #""mutable_content":true,"notification":{"body":"b"}"#,
      #"{"aps":{"alert":{"body":"b"},"mutable-content":1}}"#
    ),
    (
      "mutable_content without an alert is left out", #""mutable_content":true,"notification":{"badge":1}"#,
      #"{"aps":{"badge":1}}"#
    ),
    (
      "GS-108 other scripts pass byte for byte, and escapes of them are shortened", #""notification":{"body":"雑談部屋 \u96d1"}"#,
      #"{"aps":{"alert":{"body":"雑談部屋 雑"}}}"#
    ),
    (
      "what has to be escaped stays escaped", #""notification":{"body":"a\"b\\c\n\u0001\/"}"#,
      #"{"aps":{"alert":{"body":"a\"b\\c\n\u0001/"}}}"#
    ),
    // The block.
    (
      "the block's aps wins key by key",
      #""notification":{"body":"b","badge":1,"sound":"x"},"apns":{"payload":{"aps":{"badge":9,"thread-id":"t"}}}"#,
      #"{"aps":{"alert":{"body":"b"},"sound":"x","badge":9,"thread-id":"t"}}"#
    ),
    (
      "two alerts are merged key by key",
      #""notification":{"title":"t","body":"b"},"apns":{"payload":{"aps":{"alert":{"body":"B","launch-image":"l"}}}}"#,
      #"{"aps":{"alert":{"title":"t","body":"B","launch-image":"l"}}}"#
    ),
    (
      "an alert that is a string replaces the other",
      #""notification":{"title":"t","body":"b"},"apns":{"payload":{"aps":{"alert":"A"}}}"#,
      #"{"aps":{"alert":"A"}}"#
    ),
    (
      "a null in the block's aps takes a key away",
      #""notification":{"body":"b","sound":"x"},"apns":{"payload":{"aps":{"sound":null}}}"#,
      #"{"aps":{"alert":{"body":"b"}}}"#
    ),
    (
      "an alert taken away leaves a background push", #""notification":{"body":"b"},"apns":{"payload":{"aps":{"alert":null}}}"#,
      #"{"aps":{"content-available":1}}"#
    ),
    (
      "the block's own keys replace data keys and keep their types",
      #""data":{"a":"1","b":"2"},"apns":{"payload":{"a":{"x":[1,null]},"c":3}}"#,
      #"{"aps":{"content-available":1},"b":"2","a":{"x":[1,null]},"c":3}"#
    ),
    (
      "a critical sound's flag is a number for APNs", #""notification":{"sound":{"critical":true,"name":"a","volume":null}}"#,
      #"{"aps":{"sound":{"critical":1,"name":"a"}}}"#
    ),
    (
      "a live activity's score may be any number, its texts localised in place, and GCM's alert goes along",
      #""notification":{"title":"t"},"apns":{"payload":{"aps":{"timestamp":1,"event":"start","attributes-type":"A","attributes":{"a":1},"content-state":{},"relevance-score":75,"alert":{"body":{"loc-key":"K"},"sound":"s"}}}}"#,
      #"{"aps":{"alert":{"title":"t","body":{"loc-key":"K"},"sound":"s"},"timestamp":1,"event":"start","attributes-type":"A","attributes":{"a":1},"content-state":{},"relevance-score":75}}"#
    ),
    (
      "modern keys are reachable",
      #""notification":{"body":"b"},"apns":{"payload":{"aps":{"interruption-level":"time-sensitive","relevance-score":0.5}}}"#,
      #"{"aps":{"alert":{"body":"b"},"interruption-level":"time-sensitive","relevance-score":0.5}}"#
    ),
  ]

  @Test("the payload is what the rules demand", arguments: payloads)
  func payload(rule: String, members: String, payload: String) throws {
    #expect(utf8(try apns(accepted(members)).payload) == payload, "\(rule)")
  }

  static let headers: [(String, String, String)] = [
    ("GS-054 normal", #""priority":"normal","notification":{"body":"b"}"#, "com.example.app alert 5 4W -"),
    ("GS-054 high", #""priority":"high","notification":{"body":"b"}"#, "com.example.app alert 10 4W -"),
    ("GS-051 absent is normal", #""notification":{"body":"b"}"#, "com.example.app alert 5 4W -"),
    ("GS-057 a background push never has 10", #""priority":"high","data":{"a":"b"}"#, "com.example.app background 5 4W -"),
    (
      "GS-057 nor by the block", #""data":{"a":"b"},"apns":{"headers":{"apns-priority":"10"}}"#,
      "com.example.app background 5 4W -"
    ),
    (
      "GS-072 delay_while_idle is a hint for normal", #""delay_while_idle":true,"notification":{"body":"b"}"#,
      "com.example.app alert 5 4W -"
    ),
    (
      "GS-062 the expiration counts from publishing", #""time_to_live":600,"notification":{"body":"b"}"#,
      "com.example.app alert 5 \((testNow - 60_000) / 1000 + 600) -"
    ),
    ("GS-063 zero is now or never", #""time_to_live":0,"notification":{"body":"b"}"#, "com.example.app alert 5 0 -"),
    ("GS-033 collapse_key", #""collapse_key":"news","notification":{"body":"b"}"#, "com.example.app alert 5 4W news"),
    ("an empty collapse_key is none", #""collapse_key":"","notification":{"body":"b"}"#, "com.example.app alert 5 4W -"),
    ("GS-105 a tag does not collapse", #""notification":{"body":"b","tag":"t"}"#, "com.example.app alert 5 4W -"),
    ("badge alone is an alert", #""notification":{"badge":1}"#, "com.example.app alert 5 4W -"),
    ("sound alone is an alert", #""notification":{"sound":"x"}"#, "com.example.app alert 5 4W -"),
    (
      "content_available beside an alert stays an alert",
      #""priority":"high","content_available":true,"notification":{"body":"b"}"#, "com.example.app alert 10 4W -"
    ),
    (
      "the block's headers win",
      #""priority":"high","collapse_key":"k","time_to_live":5,"notification":{"body":"b"},"apns":{"headers":{"apns-priority":"1","apns-collapse-id":"c","apns-expiration":"1800000000","apns-topic":"other.app"}}"#,
      "other.app alert 1 1800000000 c"
    ),
    ("voip", #""data":{"a":"b"},"apns":{"headers":{"apns-push-type":"voip"}}"#, "com.example.app.voip voip 5 4W -"),
    (
      "complication", #""data":{},"apns":{"headers":{"apns-push-type":"complication"}}"#,
      "com.example.app.complication complication 5 4W -"
    ),
    (
      "fileprovider", #""data":{},"apns":{"headers":{"apns-push-type":"fileprovider"}}"#,
      "com.example.app.pushkit.fileprovider fileprovider 5 4W -"
    ),
    ("mdm", #""data":{},"apns":{"headers":{"apns-push-type":"mdm"}}"#, "com.example.app mdm 5 4W -"),
    (
      "location", #""data":{},"apns":{"headers":{"apns-push-type":"location"}}"#,
      "com.example.app.location-query location 5 4W -"
    ),
    (
      "liveactivity",
      #""data":{},"apns":{"headers":{"apns-push-type":"liveactivity"},"payload":{"aps":{"timestamp":1,"event":"end"}}}"#,
      "com.example.app.push-type.liveactivity liveactivity 5 4W -"
    ),
    (
      "pushtotalk", #""data":{},"apns":{"headers":{"apns-push-type":"pushtotalk"}}"#,
      "com.example.app.voip-ptt pushtotalk 5 4W -"
    ),
    (
      "widgets", #""data":{},"apns":{"headers":{"apns-push-type":"widgets"}}"#,
      "com.example.app.push-type.widgets widgets 5 4W -"
    ),
    (
      "controls", #""data":{},"apns":{"headers":{"apns-push-type":"controls"}}"#,
      "com.example.app.push-type.controls controls 5 4W -"
    ),
    (
      "a live activity is known by its content",
      #""priority":"high","apns":{"payload":{"aps":{"timestamp":1,"event":"update","content-state":{}}}}"#,
      "com.example.app.push-type.liveactivity liveactivity 10 4W -"
    ),
    (
      "a live activity ends by its event alone",
      #""priority":"high","apns":{"payload":{"aps":{"timestamp":1,"event":"end","alert":{"title":"Final"}}}}"#,
      "com.example.app.push-type.liveactivity liveactivity 10 4W -"
    ),
    (
      "a live activity is started by its attributes",
      #""apns":{"payload":{"aps":{"timestamp":1,"event":"start","attributes-type":"A","attributes":{},"content-state":{},"alert":{"title":"t"}}}}"#,
      "com.example.app.push-type.liveactivity liveactivity 5 4W -"
    ),
  ]

  @Test("the headers are what the rules demand", arguments: headers)
  func header(rule: String, members: String, expected: String) throws {
    let fourWeeks = String((testNow - 60_000) / 1000 + 2_419_200)
    #expect(try apns(accepted(members)).headers == expected.replacingOccurrences(of: "4W", with: fourWeeks), "\(rule)")
  }

  @Test("every documented push type has a case here", arguments: PushType.allCases)
  func pushTypes(type: PushType) throws {
    let word = utf8(type.word)
    #expect(APNsHeader.pushTypes.contains(word))
    #expect(PushType(word: type.word) == type)
    #expect(APNsHeader.pushTypes.count == PushType.allCases.count)
  }

  @Test("a request in FCM v1's shape means the same; its absent priority is FCM's 10")
  func v1Shape() throws {
    let push = try apns(
      parsed(
        #"{"message":{"token":"\#(apnsToken)","notification":{"title":"t","body":"b"},"data":{"k":"v"},"android":{"priority":"normal","collapse_key":"x"},"apns":{"payload":{"aps":{"badge":1}}}}}"#
      ))
    #expect(utf8(push.payload) == #"{"aps":{"alert":{"title":"t","body":"b"},"badge":1},"k":"v"}"#)
    #expect(push.priority == 10 && push.collapseID == nil)
    let silent = try apns(parsed(#"{"message":{"token":"\#(apnsToken)","data":{"k":"v"}}}"#))
    #expect(silent.priority == 5 && utf8(silent.pushType) == "background")
  }

  @Test("settings choose the default priority")
  func settings() throws {
    let settings = APNsSettings(topic: "a.b", defaultPriority: .high)
    #expect(try apns(accepted(#""notification":{"body":"b"}"#), settings: settings).priority == 10)
    #expect(try apns(accepted(#""delay_while_idle":true,"notification":{"body":"b"}"#), settings: settings).priority == 5)
  }

  /// Keys of many kinds: some have the same beginning, differ only in blanks, or look like a shortened key.
  static let collapseKeys: [String] = {
    let address = "https://news.example.com/match/2026/portugal-vs-denmark/live/score/minute-"
    var keys = [address + "1", address + "2", " ", "  ", "a", " a", "a ", " a ", "~", "é", "e\u{301}"]
    for unit in ["a", "あ", "🇩", "é"] {
      for count in [20, 21, 22, 30, 32, 33, 64, 65, 100] { keys.append(String(repeating: unit, count: count)) }
    }
    keys += keys.compactMap { CollapseID.make(Array($0.utf8)).map(utf8) }
    return Array(Set(keys)).sorted()
  }()

  @Test("GS-034 different collapse keys stay different, and a key of up to 64 bytes stays unchanged")
  func collapseKeys() throws {
    var ids: Set<[UInt8]> = []
    for key in Self.collapseKeys {
      let id = try #require(try apns(accepted(#""collapse_key":"\#(key)""#)).collapseID)
      #expect(1...64 ~= id.count && String(validating: id, as: UTF8.self) != nil && id.first != 0x20 && id.last != 0x20)
      #expect(ids.insert(id).inserted, "\(key)")
      if key.utf8.count <= 64, key.first != " ", key.last != " ", !key.contains("~") { #expect(utf8(id) == key) }
    }
    #expect(ids.count == Self.collapseKeys.count && ids.count > 50)
  }

  @Test("a collapse id is the same for ever: workers of two versions agree on it")
  func collapseID() throws {
    let key = "https://news.example.com/match/2026/portugal-vs-denmark/live/score/minute-1"
    #expect(
      try apns(accepted(#""collapse_key":"\#(key)""#)).collapseID.map(utf8)
        == "https://news.example.com/match/2026/portuga~apqv9ad6id8viijsb3v4")
  }

  @Test("the block's apns-id is used unchanged; without one, message and device determine it")
  func identity() throws {
    let id = "2ed6657d-e927-568b-95e1-2665a8aea6a2"
    #expect(utf8(try apns(accepted(#""apns":{"headers":{"apns-id":"\#(id)"}}"#)).id) == id)
    let (one, two) = (try apns(accepted("")), try apns(accepted(#""data":{"other":"request"}"#)))
    #expect(one.id == two.id)
  }

  @Test("a Live Activity's push goes to the activity's token")
  func liveActivityToken() throws {
    let activity = String(repeating: "AB", count: 80)
    let push = try apns(
      accepted(#""apns":{"live_activity_token":"\#(activity)","payload":{"aps":{"timestamp":1,"event":"end"}}}"#))
    #expect(utf8(push.token) == activity.lowercased())
    #expect(utf8(push.pushType) == "liveactivity")
    #expect(push.id == DeviceIdentity.apnsID(messageID: Array("m-1".utf8), token: Array(apnsToken.utf8)))
  }

  @Test(
    "what APNs would refuse is refused before sending, with its rule",
    arguments: [
      (#""data":{"aps":"x"}"#, .invalidDataKey, "data.aps: reserved by APNs"),
      (#""notification":{"icon":"i"}"#, .nothingForPlatform, "nothing in the request is for an Apple device"),
      (#""notification":{}"#, .nothingForPlatform, "nothing in the request"),
      (#""notification":{"click_action":"X","tag":"t"},"data":{"k":null}"#, .nothingForPlatform, "nothing in the request"),
      (#""android":{"notification":{"title":"t"}}"#, .nothingForPlatform, "nothing in the request"),
      (#""webpush":{"notification":{"title":"t"}}"#, .nothingForPlatform, "nothing in the request"),
      (#""data":{"\u0061ps":"x"}"#, .invalidDataKey, "data.aps: reserved by APNs"),
      (#""webpush":{"fcm_options":{"link":"https://x"}}"#, .nothingForPlatform, "nothing in the request"),
      (#""notification":{"icon":"i"},"apns":{"payload":{}}"#, .nothingForPlatform, "nothing in the request"),
      (
        #""apns":{"payload":{"aps":{"content-available":1,"thread-id":"x"}}}"#, .invalidParameters, "apns.payload.aps.thread-id"
      ),
      (#""apns":{"payload":{"aps":{"content-changed":true}}}"#, .invalidParameters, "name another apns-push-type"),
      (
        #""apns":{"headers":{"apns-push-type":"liveactivity"}}"#, .invalidParameters,
        "apns.payload.aps.timestamp: missing, a live activity's push needs it"
      ),
      (
        #""apns":{"payload":{"aps":{"timestamp":1,"content-state":{}}}}"#, .invalidParameters, "apns.payload.aps.event: missing"
      ),
      (
        #""apns":{"payload":{"aps":{"timestamp":1,"event":"start","attributes":{},"attributes-type":null,"content-state":{}}}}"#,
        .invalidParameters, "apns.payload.aps.attributes-type: missing, starting a live activity needs it"
      ),
      (
        #""apns":{"payload":{"aps":{"timestamp":1,"event":"start","attributes":{},"attributes-type":"A","content-state":{}}}}"#,
        .invalidParameters, "apns.payload.aps.alert: missing, starting a live activity needs it"
      ),
    ] as [(String, PushError, String)])
  func refused(members: String, code: PushError, words: String) throws {
    let request = try accepted(members)
    let rejection = #expect(throws: Rejection.self) { try apns(request) }
    #expect(rejection?.code == code)
    #expect(rejection?.reason.contains(words) == true, "\(rejection?.reason ?? "")")
  }

  @Test("a topic that is no bundle ID never reaches a header")
  func topic() throws {
    let request = try accepted("")
    for topic in ["", "a b", "a\r\nx: y", "a\u{0}", String(repeating: "a", count: 256)] {
      let rejection = #expect(throws: Rejection.self) { try apns(request, settings: APNsSettings(topic: topic)) }
      #expect(rejection?.code == .invalidPackageName)
    }
  }

  /// A request whose payload has exactly `bytes` bytes, made of `unit`s and ASCII.
  static func sized(_ bytes: Int, type: String, unit: String = "") throws -> SendRequest {
    var limits = RequestLimits()
    limits.dataBytes = 100_000
    let frame = type == "voip" ? #"{"aps":{},"k":""}"# : #"{"aps":{"content-available":1},"k":""}"#
    let room = bytes - frame.utf8.count
    let units = unit.isEmpty ? 0 : room / unit.utf8.count
    let value = String(repeating: unit, count: units) + String(repeating: "x", count: room - units * unit.utf8.count)
    let block = type == "voip" ? #","apns":{"headers":{"apns-push-type":"voip"}}"# : ""
    return try parsed(#"{"to":"\#(apnsToken)","data":{"k":"\#(value)"}\#(block)}"#, limits: limits)
  }

  @Test("a push type uses tokens of its own kind; alert, background and mdm use the app's")
  func kindOfToken() {
    for type in PushType.allCases {
      let kind = TokenKind(type, startsActivity: false)
      switch type {
      case .alert, .background: #expect(kind == .alert)
      case .mdm: #expect(kind == nil)
      case .liveactivity: #expect(kind == .liveActivity && TokenKind(type, startsActivity: true) == .pushToStart)
      default: #expect(kind?.name == "\(type)" && kind?.isForActivity == false)
      }
    }
  }

  @Test(
    "the limit is in bytes: 4096 of payload pass and 4097 don't, 5120 and 5121 for voip",
    arguments: [
      ("background", 4096, ""), ("background", 4096, "部"), ("background", 4096, "🇩🇰"), ("voip", 5120, ""), ("voip", 5120, "部"),
    ])
  func limits(type: String, limit: Int, unit: String) throws {
    #expect(try apns(Self.sized(limit, type: type, unit: unit)).payload.count == limit)
    let tooBig = try Self.sized(limit + 1, type: type, unit: unit)
    let rejection = #expect(throws: Rejection.self) { try apns(tooBig) }
    #expect(rejection?.code == .messageTooBig)
    #expect(rejection?.reason == "an APNs payload of \(limit + 1) bytes, at most \(limit) allowed for push type \(type)")
  }

  @Test("a block with too many keys is refused before they are compared")
  func manyKeys() throws {
    let keys = (0..<20_000).map { #""k\#($0)":1"# }.joined(separator: ",")
    let request = try accepted(#""data":{"a":"b"},"apns":{"payload":{\#(keys)}}"#)
    let rejection = #expect(throws: Rejection.self) { try apns(request) }
    #expect(rejection?.code == .messageTooBig)
  }

  @Test(
    "members of data are the same in every spelling of the source",
    arguments: [
      #""a":"1","b":"2","c":"3""#, #""a":"1", "b":"2","c":"3""#, #" "a" : "1" ,"b":"2","c" :"3" "#,
      #""a":"1","n":null,"b":"2","c":"3""#, #""n":null,"a":"1","b":"2","c":"3","m":null"#,
      #""a":"1","b":2,"c":"3""#, #""\u0061":"1","b":"2","c":"3""#, #""a":"1","b":"\u0032","c":"3""#,
      #""a":1,"b":"2","c":"3""#, #""a":"1","b":"2","c":3"#,
    ])
  func spellings(data: String) throws {
    let push = try apns(try accepted(#""notification":{"title":"t"},"data":{\#(data)}"#))
    #expect(utf8(push.payload) == #"{"aps":{"alert":{"title":"t"}},"a":"1","b":"2","c":"3"}"#)
  }
}
