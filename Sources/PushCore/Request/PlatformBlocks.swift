/// The validated override blocks of a request in FCM v1's shape. A class, because most requests have none.
final class PlatformBlocks: Sendable {
  let apns: FieldSlots<APNsKey>
  let apnsHeaders: FieldSlots<APNsHeader>
  /// The keys of `android` or `android_v2`. `android_v2` has its `notification` in `remote_notification`.
  let android: FieldSlots<AndroidKey>
  let androidNotification: FieldSlots<AndroidNotificationKey>
  /// The keys of `android_v2.remote_notification`.
  let remoteNotification: FieldSlots<RemoteNotificationKey>
  let webpush: FieldSlots<WebpushKey>

  /// True for `android_v2`, which has exactly one of the two.
  var isV2: Bool { android[.remoteNotification] != nil || android[.backgroundSync] != nil }

  init(apns: Int?, android: Int?, androidV2: Int?, webpush: Int?, _ reader: RequestReader) throws(Rejection) {
    self.apns = try reader.fields(of: apns, APNsKey.table, \.rule)
    self.webpush = try reader.fields(of: webpush, WebpushKey.table, \.rule)
    if let androidV2 {
      guard android == nil else {
        throw reader.refusal(androidV2, .invalidParameters, "beside android, expected only one of the two")
      }
      var block = try reader.androidV2(androidV2)
      remoteNotification = try reader.fields(of: block[.remoteNotification], RemoteNotificationKey.table, \.rule)
      if let notification = remoteNotification[.notification] { block.set(.notification, notification) }
      self.android = block
      androidNotification = try reader.fields(of: block[.notification], AndroidNotificationKey.tableV2, \.ruleV2)
    } else {
      self.android = try reader.fields(of: android, AndroidKey.table, \.rule)
      androidNotification = try reader.fields(of: self.android[.notification], AndroidNotificationKey.table, \.rule)
      remoteNotification = FieldSlots()
    }
    apnsHeaders = try self.apns[.headers].map(reader.apnsHeaders) ?? FieldSlots()
    if let payload = self.apns[.payload] { try reader.checkPayload(payload) }
    if let token = self.apns[.liveActivityToken] {
      try reader.checkLiveActivityToken(token, pushType: apnsHeaders[.apnsPushType])
    }
    if let key = self.android[.collapseKey] { _ = try reader.collapseKey(key) }
    if let name = self.android[.restrictedPackageName] { _ = try reader.packageName(name) }
  }
}

extension SendRequest {
  public func apns(_ key: APNsKey) -> Int? { blocks?.apns[key] }
  /// The node of a header field in `apns.headers`, a string.
  public func apnsHeader(_ header: APNsHeader) -> Int? { blocks?.apnsHeaders[header] }
  /// The `apns-id` of the request: a UUID in lower case.
  public var apnsID: [UInt8]? { apnsHeader(.apnsId).map { document.string($0).map { $0 | 0x20 } } }
  /// `apns.live_activity_token` in lower case.
  var activityToken: [UInt8]? { apns(.liveActivityToken).map { document.string($0).map { $0 | 0x20 } } }
  /// A key of `android` or `android_v2`.
  public func android(_ key: AndroidKey) -> Int? { blocks?.android[key] }
  /// A key of `android.notification`, or the same key of `android_v2.remote_notification.notification`.
  public func androidNotification(_ key: AndroidNotificationKey) -> Int? { blocks?.androidNotification[key] }
  func remoteNotification(_ key: RemoteNotificationKey) -> Int? { blocks?.remoteNotification[key] }
  var hasAndroidV2: Bool { blocks?.isV2 == true }
  public func webpush(_ key: WebpushKey) -> Int? { blocks?.webpush[key] }
}

extension RequestReader {
  fileprivate func apnsHeaders(_ node: Int) throws(Rejection) -> FieldSlots<APNsHeader> {
    let headers = try fields(of: node, APNsHeader.table) { _ in .string }
    for header in APNsHeader.allCases {
      guard let value = headers[header] else { continue }
      var text = document.string(value)
      if isLenient, header == .apnsId { text = text.map { $0 | 0x20 } }
      if let broken = header.brokenRule(text) { throw refusal(value, .invalidParameters, broken) }
    }
    return headers
  }

  fileprivate func androidV2(_ node: Int) throws(Rejection) -> FieldSlots<AndroidKey> {
    let block = try fields(of: node, AndroidKey.tableV2, \.rule)
    let remote = block[.remoteNotification]
    if remote != nil, let sync = block[.backgroundSync] {
      throw refusal(sync, .invalidParameters, "beside remote_notification, expected only one of the two")
    }
    guard remote != nil || block[.backgroundSync] != nil else {
      throw refusal(node, .invalidParameters, "expected remote_notification or background_sync in it")
    }
    return block
  }

  fileprivate func checkPayload(_ node: Int) throws(Rejection) {
    guard let aps = document.value("aps", of: node), document.kind(aps) != .null else { return }
    guard document.kind(aps) == .object else { throw wrongType(aps, expected: "an object") }
    try checkKnown(in: aps, APSKey.table, \.rule)
  }

  fileprivate func checkLiveActivityToken(_ node: Int, pushType: Int?) throws(Rejection) {
    let text = document.string(node)
    guard (2...200).contains(text.count), text.count % 2 == 0, text.allSatisfy(Bytes.isHex) else {
      throw refusal(node, .invalidParameters, "expected an even number of 2 to 200 hexadecimal digits")
    }
    if let pushType, !document.isString(pushType, "liveactivity") {
      let word = String(decoding: document.string(pushType), as: UTF8.self)
      throw refusal(node, .invalidParameters, "beside apns-push-type \(word), expected liveactivity or none")
    }
  }
}

extension APNsHeader {
  /// The violated rule, for people; nil if APNs accepts the value (Apple: "Sending notification requests to APNs").
  public func brokenRule(_ value: [UInt8]) -> String? {
    switch self {
    case .apnsPushType:
      PushType(word: value) != nil ? nil : "expected one of \(Self.pushTypes.joined(separator: ", "))"
    case .apnsTopic:
      TextForm.isPackageName(value) ? nil : "expected a bundle ID, with the push type's suffix"
    case .apnsId:
      UUIDText.isCanonical(value) ? nil : "expected a UUID in lower case, 8-4-4-4-12"
    case .apnsExpiration:
      (1...12).contains(value.count) && value.allSatisfy(Bytes.isDigit) ? nil : "expected UNIX seconds"
    case .apnsPriority:
      ["1", "5", "10"].contains { value.elementsEqual($0.utf8) } ? nil : "expected 1, 5 or 10"
    case .apnsCollapseId:
      (1...64).contains(value.count) && TextForm.isPlainLine(value) ? nil : "expected 1 to 64 bytes without control characters"
    }
  }

  /// All values of `apns-push-type` that Apple documents for `/3/device`.
  public static let pushTypes = PushType.allCases.map { String(describing: $0) }
}
