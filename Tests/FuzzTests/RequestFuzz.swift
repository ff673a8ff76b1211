@testable import PushCore

/// A body that is accepted translates to each platform or is refused with a reason; what is sent is well-formed and within the
/// provider's limits; asking for a report changes nothing else.
enum RequestFuzz {
  private static let now: Int64 = 1_795_209_720_123
  private static let token = Array(String(repeating: "0a", count: 32).utf8)

  static func run(_ input: inout Input) throws(Violation) {
    let choices = input.byte()
    let body = input.remainder()
    let request: SendRequest
    switch SendRequest.parse(body) {
    case .success(let parsed): request = parsed
    case .failure(let rejection): return try check(rejection)
    }
    let lifetime = Int64(request.timeToLive ?? request.androidTimeToLive ?? RequestLimits.longestTimeToLive) * 1000
    let age: Int64 = choices & 1 == 0 ? 0 : 60_000
    let context = TranslationContext(
      now: now, deadline: now - age + lifetime, messageID: choices & 2 == 0 ? [] : Array("m-1".utf8),
      published: choices & 4 == 0 ? now - age : nil)
    let priority: Priority = choices & 8 == 0 ? .normal : .high
    let settings = APNsSettings(topic: "com.example.app", defaultPriority: priority)
    try checkAPNs(request, settings, context)
    try checkFCM(request, FCMSettings(defaultPriority: priority), context)
    try checkWebPush(request, priority, context)
    try checkOneDevice(request, body)
  }

  private static func check(_ rejection: Rejection) throws(Violation) {
    try require(!rejection.reason.isEmpty, "refused with \(rejection.code) and no reason")
    let header = DeadLetter.bounded(rejection.reason)
    try require(header.count <= DeadLetter.longestReason, "a reason of \(header.count) bytes in a header")
  }

  private static func check(_ report: LossReport?) throws(Violation) {
    for entry in report?.entries ?? [] {
      try require(!entry.rule.isEmpty && !entry.field.isEmpty && !entry.words.isEmpty, "an empty entry: \(entry)")
    }
    if let report { try require(isJSON(report.json), "a report that is no JSON") }
  }

  private static func isJSON(_ bytes: [UInt8]) -> Bool { (try? JSONDocument(bytes)) != nil }

  private static func checkAPNs(_ request: SendRequest, _ settings: APNsSettings, _ context: TranslationContext)
    throws(Violation)
  {
    var (silent, told): (LossReport?, LossReport?) = (nil, LossReport())
    let plain = Result { () throws(Rejection) in
      try APNsTemplate(request, settings: settings, context: context, report: &silent)
    }
    let explained = Result { () throws(Rejection) in
      try APNsTemplate(request, settings: settings, context: context, report: &told)
    }
    switch (plain, explained) {
    case (.failure(let one), .failure(let two)):
      try check(one)
      try require(one.code == two.code && one.reason == two.reason, "a report changes why APNs is refused")
    case (.success(let one), .success(let two)):
      let (push, again) = (one.stamp(token: token[...]), two.stamp(token: token[...]))
      try require(
        push.payload == again.payload && push.topic == again.topic && push.pushType == again.pushType
          && push.priority == again.priority && push.expiration == again.expiration && push.collapseID == again.collapseID,
        "a report changes what APNs gets")
      try check(told)
      try check(push, one.pushType)
    default: throw Violation(description: "a report changes whether APNs is refused")
    }
  }

  private static func check(_ push: APNsPush, _ type: PushType) throws(Violation) {
    try require(isJSON(push.payload), "APNs' payload is no JSON")
    try require(push.payload.count <= type.payloadLimit, "APNs' payload of \(push.payload.count) bytes")
    try require([1, 5, 10].contains(push.priority), "apns-priority \(push.priority)")
    try require(type != .background || push.priority < 10, "a background push of priority 10")
    try require(push.expiration >= 0, "apns-expiration \(push.expiration)")
    if let id = push.collapseID { try require(1...64 ~= id.count, "apns-collapse-id of \(id.count) bytes") }
    try require(push.token.allSatisfy(Bytes.isHex), "a token that is no number")
    for value in [push.topic, push.pushType, push.id, push.collapseID ?? []] {
      try require(value.allSatisfy { $0 >= 0x20 && $0 != 0x7F }, "a control character in a header of APNs")
    }
  }

  private static func checkFCM(_ request: SendRequest, _ settings: FCMSettings, _ context: TranslationContext)
    throws(Violation)
  {
    var (silent, told): (LossReport?, LossReport?) = (nil, LossReport())
    let plain = Result { () throws(Rejection) in
      try FCMTemplate(request, settings: settings, context: context, report: &silent)
    }
    let explained = Result { () throws(Rejection) in
      try FCMTemplate(request, settings: settings, context: context, report: &told)
    }
    switch (plain, explained) {
    case (.failure(let one), .failure(let two)):
      try check(one)
      try require(one.code == two.code && one.reason == two.reason, "a report changes why FCM is refused")
    case (.success(let one), .success(let two)):
      let body = one.body(token: token[...])
      try require(body == two.body(token: token[...]), "a report changes what FCM gets")
      try check(told)
      try require(isJSON(body), "FCM's body is no JSON")
      switch request.targets {
      case .one(.fcm(let address)), .one(.fcmTopics(let address)):
        let own = one.body(token: address[...])
        guard let document = try? JSONDocument(own), let message = document.value("message", of: document.root) else {
          throw Violation(description: "FCM's body is no message")
        }
        let named = ["token", "fid", "topic", "condition"].filter { document.value($0, of: message) != nil }
        try require(named.count == 1, "FCM is told \(named.count) targets")
      default: break
      }
    default: throw Violation(description: "a report changes whether FCM is refused")
    }
  }

  private static func checkWebPush(_ request: SendRequest, _ standard: Priority, _ context: TranslationContext)
    throws(Violation)
  {
    var (silent, told): (LossReport?, LossReport?) = (nil, LossReport())
    let plain = Result { () throws(Rejection) in
      try WebPushTemplate(request, standard: standard, context: context, report: &silent)
    }
    let explained = Result { () throws(Rejection) in
      try WebPushTemplate(request, standard: standard, context: context, report: &told)
    }
    switch (plain, explained) {
    case (.failure(let one), .failure(let two)):
      try check(one)
      try require(one.code == two.code && one.reason == two.reason, "a report changes why web push is refused")
    case (.success(let one), .success(let two)):
      let badge = Int64(Int32.max)
      let payload = one.payload(badge: badge, token: [])
      try require(payload == two.payload(badge: badge, token: []), "a report changes what a browser gets")
      try check(told)
      try require(isJSON(payload) && isJSON(one.payload(badge: nil, token: [])), "a payload that is no JSON")
      try require(payload.count <= WebPushTemplate.payloadLimit, "a web push of \(payload.count) bytes")
      try require(0...2_419_200 ~= one.timeToLive(at: now), "a TTL of \(one.timeToLive(at: now))")
      try require(one.topic.map { $0.count == 32 } ?? true, "a topic that is no hash")
    default: throw Violation(description: "a report changes whether web push is refused")
    }
  }

  /// A dead letter for one of many devices is a request to that device.
  private static func checkOneDevice(_ request: SendRequest, _ body: [UInt8]) throws(Violation) {
    let one = DeadLetter.body(request.document, naming: DeadLetter.target(.apns, token: token))
    switch SendRequest.parse(one) {
    case .success(let parsed): try require(parsed.targets == .one(.apns(token: token[...])), "a dead letter to somebody else")
    case .failure(let rejection): throw Violation(description: "a dead letter that is refused: \(rejection)")
    }
    for address in [token, Array("fid:cXyZ0123456789_-AbCdEf".utf8)] {
      let one = DeadLetter.body(request.document, naming: DeadLetter.target(.fcm, token: address))
      guard case .success(let parsed) = SendRequest.parse(one), parsed.targets == .one(.fcm(token: address[...])) else {
        throw Violation(description: "a dead letter to another address of FCM's")
      }
    }
  }
}
