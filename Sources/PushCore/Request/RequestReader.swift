/// Reads either shape into a ``SendRequest``: the names of the top level, then the target, then the sizes, whose limits depend
/// on the target.
struct RequestReader {
  let document: JSONDocument
  let limits: RequestLimits
  /// Notes unknown names; nil refuses them.
  var ignored: SendRequest?

  /// The first name tells the shapes apart: an FCM v1 body has only `message` and `validate_only`.
  func read(into request: SendRequest) throws(Rejection) {
    guard document.kind(document.root) == .object else {
      throw Rejection(.invalidJSON, "expected an object, found \(document.kind(document.root).words) at byte 0")
    }
    if isV1 { try readV1(request) } else { try readGCM(request) }
    try checkActivity(request)
    try checkPushType(request)
    try checkSizes(request)
    if limits.countsBadges {
      request.countsBadge = request.notification[.badge] == nil && APSContent(request).isCountable(request)
    }
    request.badgeOfCounter = request.findBadgeOfCounter()
  }

  /// True if old senders' forms are accepted: unknown names, 0 and 1 for booleans, `priority` and UUIDs in any letter case.
  var isLenient: Bool { ignored != nil }
  /// Refuses unknown names in objects that are passed on whole.
  var strict: RequestReader { RequestReader(document: document, limits: limits) }

  private var isV1: Bool {
    var members = document.memberCursor(of: document.root)
    while let (name, _) = members.next(in: document) {
      if EnvelopeField.table.field(name, in: document) != nil { return true }
      // A lenient reader skips unknown names.
      if !isLenient { return false }
    }
    return false
  }

  /// Refuses an unknown name (GS-012), or notes it and leaves it out.
  func refuseUnknown<Field>(_ name: Int, _ table: NameTable<Field>) throws(Rejection) {
    guard let ignored, !asksNotToSend(name) else { throw unknownKey(name, among: table.names) }
    ignored.ignoredNames.append(name)
  }

  /// A dry-run field of the other shape is never ignored: nothing may be sent.
  private func asksNotToSend(_ name: Int) -> Bool {
    RequestField.table.field(name, in: document) == .dryRun || EnvelopeField.table.field(name, in: document) == .validateOnly
  }

  // MARK: GCM

  private func readGCM(_ request: SendRequest) throws(Rejection) {
    var (to, notificationKey, registrationIDs, condition): (Int?, Int?, Int?, Int?)
    var (apns, android, androidV2, webpush): (Int?, Int?, Int?, Int?)
    var members = document.memberCursor(of: document.root)
    while let (name, node) = members.next(in: document) {
      guard let field = RequestField.table.field(name, in: document) else {
        try refuseUnknown(name, RequestField.table)
        continue
      }
      if document.kind(node) == .null { continue }
      switch field {
      case .to: to = node
      case .notificationKey: notificationKey = node
      case .registrationIds: registrationIDs = node
      case .condition: condition = node
      case .priority: request.priority = try priority(node)
      case .collapseKey: request.collapseKeyNode = try collapseKey(node)
      case .timeToLive: request.timeToLive = try timeToLive(node)
      case .delayWhileIdle: request.delayWhileIdle = try looseBoolean(node)
      case .contentAvailable: request.contentAvailable = try looseBoolean(node)
      case .mutableContent: request.mutableContent = try looseBoolean(node)
      case .restrictedPackageName: request.restrictedPackageNameNode = try packageName(node)
      case .dryRun: request.isDryRun = try looseBoolean(node)
      case .notification: try readNotification(node, request)
      case .data:
        try checkData(node)
        request.dataNode = node
      case .apns: apns = node
      case .android: android = node
      case .androidV2: androidV2 = node
      case .webpush: webpush = node
      }
    }
    if apns != nil || android != nil || androidV2 != nil || webpush != nil {
      request.blocks = try PlatformBlocks(apns: apns, android: android, androidV2: androidV2, webpush: webpush, self)
    }
    try readTarget(to: to, notificationKey: notificationKey, registrationIDs: registrationIDs, condition: condition, request)
  }

  private func readNotification(_ node: Int, _ request: SendRequest) throws(Rejection) {
    guard document.kind(node) == .object else { throw wrongType(node, expected: "an object") }
    request.notificationNode = node
    var members = document.memberCursor(of: node)
    while let (name, value) = members.next(in: document) {
      guard let key = NotificationKey.table.field(name, in: document) else {
        try refuseUnknown(name, NotificationKey.table)
        continue
      }
      if document.kind(value) == .null { continue }
      try check(value, key.rule)
      request.notification.set(key, value)
    }
  }

  // MARK: FCM v1

  private func readV1(_ request: SendRequest) throws(Rejection) {
    request.shape = .fcmV1
    let envelope = try fields(of: document.root, EnvelopeField.table) { $0 == .message ? .object : .boolean }
    request.isDryRun = envelope[.validateOnly].flatMap(document.bool) ?? false
    guard let message = envelope[.message] else {
      throw Rejection(.invalidParameters, "message: missing beside validate_only")
    }
    let slots = try fields(of: message, MessageField.table, \.rule)
    if let node = slots[.notification] {
      request.notificationNode = node
      request.notification = try fields(of: node, NotificationKey.plainTable, \.rule)
    }
    request.dataNode = slots[.data]
    request.fcmOptionsNode = slots[.fcmOptions]
    request.blocks = try PlatformBlocks(
      apns: slots[.apns], android: slots[.android], androidV2: slots[.androidV2], webpush: slots[.webpush], self)
    try readTargetV1(token: slots[.token], fid: slots[.fid], topic: slots[.topic], condition: slots[.condition], request)
  }

  // MARK: Fields

  /// GS-050.
  private func priority(_ node: Int) throws(Rejection) -> Priority {
    if document.isString(node, "high") { return .high }
    if document.isString(node, "normal") { return .normal }
    if isLenient, document.kind(node) == .string {
      let word = document.string(node).map { $0 | 0x20 }
      if word.elementsEqual("high".utf8) { return .high }
      if word.elementsEqual("normal".utf8) { return .normal }
    }
    throw refusal(node, .invalidParameters, "expected \"high\" or \"normal\"")
  }

  /// GS-060. Accepts a string too, because Google's own XMPP example sends one.
  private func timeToLive(_ node: Int) throws(Rejection) -> Int {
    guard let seconds = integer(node), seconds >= 0, seconds <= Int64(RequestLimits.longestTimeToLive) else {
      throw refusal(node, .invalidTTL, "expected an integer from 0 to \(RequestLimits.longestTimeToLive)")
    }
    return Int(seconds)
  }

  func collapseKey(_ node: Int) throws(Rejection) -> Int? {
    guard document.kind(node) == .string else { throw wrongType(node, expected: "a string") }
    let range = document.source(node)
    if range.count <= 64, !range.isEmpty, document.bytes[range].allSatisfy({ $0 >= 0x20 && $0 < 0x7F && $0 != 0x5C }) {
      return node
    }
    let key = document.string(node)
    guard key.count <= limits.collapseKeyBytes else {
      throw refusal(node, .invalidParameters, "\(key.count) bytes, at most \(limits.collapseKeyBytes) allowed")
    }
    guard TextForm.isPlainLine(key) else { throw refusal(node, .invalidParameters, "a control character in it") }
    return key.isEmpty ? nil : node
  }

  func packageName(_ node: Int) throws(Rejection) -> Int? {
    guard document.kind(node) == .string else { throw wrongType(node, expected: "a string") }
    let name = document.string(node)
    guard !name.isEmpty else { return nil }
    guard TextForm.isPackageName(name) else { throw refusal(node, .invalidPackageName, "not the name of a package") }
    return node
  }

  /// Accepts values of any type; the platform's translation turns them into strings where needed.
  private func checkData(_ node: Int) throws(Rejection) {
    guard document.kind(node) == .object else { throw wrongType(node, expected: "an object") }
    var members = document.memberCursor(of: node)
    while let (name, _) = members.next(in: document) { try refuseReserved(name) }
  }

  // MARK: Sizes

  private func checkSizes(_ request: SendRequest) throws(Rejection) {
    if let node = request.notificationNode {
      try checkSize(of: node, request.shape == .gcm ? limits.notificationBytes : RequestLimits.v1NotificationBytes)
    }
    guard let node = request.dataNode else { return }
    let page = limits.extensionBytes == nil ? nil : request.extensionNode
    if let page, let most = limits.extensionBytes { try checkExtension(page, most) }
    switch request.targets {
    case .one(.topic), .one(.fcmTopics), .condition:
      try checkSize(of: node, min(limits.dataBytes, limits.topicDataBytes), without: page)
    case .one, .list: try checkSize(of: node, limits.dataBytes, without: page)
    }
  }

  /// - Parameter free: the value of a member that doesn't count.
  private func checkSize(of object: Int, _ most: Int, without free: Int? = nil) throws(Rejection) {
    if document.source(object).count <= most { return }
    let bytes = document.contentCount(of: object, without: Set(ignored?.ignoredNames ?? []), free)
    guard bytes <= most else {
      throw refusal(object, .messageTooBig, "\(bytes) bytes of keys and values, at most \(most) allowed")
    }
  }

  private func checkExtension(_ node: Int, _ most: Int) throws(Rejection) {
    guard document.source(node).count > most else { return }
    let bytes = document.contentCount(node)
    guard bytes <= most else { throw refusal(node, .messageTooBig, "\(bytes) bytes, at most \(most) allowed") }
  }
}
