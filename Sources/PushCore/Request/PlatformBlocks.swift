/// The override blocks of a request in FCM v1's shape, validated. What stands in them wins over what was translated.
public struct PlatformBlocks: Sendable {
  public internal(set) var apns = FieldSlots<APNsKey>()
  public internal(set) var apnsHeaders = FieldSlots<APNsHeader>()
  public internal(set) var android = FieldSlots<AndroidKey>()
  public internal(set) var androidNotification = FieldSlots<AndroidNotificationKey>()
  public internal(set) var webpush = FieldSlots<WebpushKey>()

  init() {}

  mutating func readAPNs(_ node: Int, _ check: FieldCheck) throws(Rejection) {
    apns = try check.fields(of: node, APNsKey.table) { (key, value) throws(Rejection) in try check.check(value, key.rule) }
    if let headers = apns[.headers] {
      apnsHeaders = try check.fields(of: headers, APNsHeader.table) { (header, value) throws(Rejection) in
        guard check.document.kind(value) == .string else { throw check.wrongType(value, expected: "a string") }
        if let broken = header.brokenRule(check.document.string(value)) {
          throw check.refusal(value, .invalidParameters, broken)
        }
      }
    }
    if let payload = apns[.payload], let aps = check.document.value("aps", of: payload),
      check.document.kind(aps) != .object
    {
      throw check.wrongType(aps, expected: "an object")
    }
    if let token = apns[.liveActivityToken] {
      let text = check.document.string(token)
      guard (2...200).contains(text.count), text.count % 2 == 0, text.allSatisfy(Bytes.isHex) else {
        throw check.refusal(token, .invalidParameters, "expected an even number of 2 to 200 hexadecimal digits")
      }
    }
  }

  mutating func readAndroid(_ node: Int, _ check: FieldCheck) throws(Rejection) {
    android = try check.fields(of: node, AndroidKey.table) { (key, value) throws(Rejection) in try check.check(value, key.rule)
    }
    if let notification = android[.notification] {
      androidNotification = try check.fields(of: notification, AndroidNotificationKey.table) { (key, value) throws(Rejection) in
        try check.check(value, key.rule)
      }
    }
  }

  mutating func readWebpush(_ node: Int, _ check: FieldCheck) throws(Rejection) {
    webpush = try check.fields(of: node, WebpushKey.table) { (key, value) throws(Rejection) in try check.check(value, key.rule)
    }
  }
}

extension APNsHeader {
  /// The rule that a value breaks, in words; nil when it is one that APNs takes (Apple: "Sending notification requests to APNs").
  func brokenRule(_ value: [UInt8]) -> String? {
    switch self {
    case .apnsPushType:
      Self.pushTypes.contains { value.elementsEqual($0.utf8) }
        ? nil : "expected one of \(Self.pushTypes.joined(separator: ", "))"
    case .apnsTopic:
      TextForm.isPackageName(value) ? nil : "expected a bundle ID, with the push type's suffix"
    case .apnsId:
      TextForm.isUUID(value) ? nil : "expected a UUID in lower case, 8-4-4-4-12"
    case .apnsExpiration:
      (1...12).contains(value.count) && value.allSatisfy(Bytes.isDigit) ? nil : "expected UNIX seconds"
    case .apnsPriority:
      ["1", "5", "10"].contains { value.elementsEqual($0.utf8) } ? nil : "expected 1, 5 or 10"
    case .apnsCollapseId:
      (1...64).contains(value.count) && TextForm.isPlainLine(value) ? nil : "expected 1 to 64 bytes without control characters"
    }
  }

  /// Every value of `apns-push-type` that Apple documents for `/3/device`.
  public static let pushTypes = [
    "alert", "background", "voip", "complication", "fileprovider", "mdm", "location", "liveactivity", "pushtotalk", "widgets",
    "controls",
  ]
}
