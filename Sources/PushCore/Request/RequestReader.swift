/// Reads either shape into a ``SendRequest``: one switch over the names of the top level, then the target, then the sizes, which
/// depend on it.
struct RequestReader {
  let check: FieldCheck
  var document: JSONDocument { check.document }

  func read() throws(Rejection) -> SendRequest {
    guard document.kind(document.root) == .object else {
      throw Rejection(.invalidJSON, "expected an object, found \(document.kind(document.root).words) at byte 0")
    }
    for (name, _) in document.members(of: document.root) where EnvelopeField.table.field(name, in: document) != nil {
      return try readV1()
    }
    return try readGCM()
  }

  // MARK: GCM

  private func readGCM() throws(Rejection) -> SendRequest {
    var request = SendRequest(document: document)
    let slots = try check.fields(of: document.root, RequestField.table) { (field, node) throws(Rejection) in
      switch field {
      case .to, .registrationIds, .condition, .notificationKey: break
      case .priority: request.priority = try priority(node)
      case .collapseKey: request.collapseKeyNode = try collapseKey(node)
      case .timeToLive: request.timeToLive = try timeToLive(node)
      case .delayWhileIdle: request.delayWhileIdle = try check.looseBoolean(node)
      case .contentAvailable: request.contentAvailable = try check.looseBoolean(node)
      case .mutableContent: request.mutableContent = try check.looseBoolean(node)
      case .restrictedPackageName: request.restrictedPackageNameNode = try packageName(node)
      case .dryRun: request.isDryRun = try check.looseBoolean(node)
      case .notification:
        request.notificationNode = node
        request.notification = try check.fields(of: node, NotificationKey.table) { (key, value) throws(Rejection) in
          try check.check(value, key.rule)
        }
      case .data:
        try readData(node)
        request.dataNode = node
      case .apns: try request.blocks.readAPNs(node, check)
      case .android: try readAndroid(node, &request)
      case .webpush: try request.blocks.readWebpush(node, check)
      }
    }
    try TargetReader(check: check).read(
      [slots[.to], slots[.notificationKey], slots[.registrationIds], slots[.condition]], &request)
    try checkSizes(request)
    return request
  }

  // MARK: FCM v1

  private func readV1() throws(Rejection) -> SendRequest {
    var request = SendRequest(document: document)
    request.shape = .fcmV1
    let envelope = try check.fields(of: document.root, EnvelopeField.table) { (field, node) throws(Rejection) in
      guard field == .validateOnly else { return }
      guard let flag = document.bool(node) else { throw check.wrongType(node, expected: "a boolean") }
      request.isDryRun = flag
    }
    guard let message = envelope[.message] else {
      throw Rejection(.invalidParameters, "message: missing beside validate_only")
    }
    let slots = try check.fields(of: message, MessageField.table) { (field, node) throws(Rejection) in
      switch field {
      case .token, .topic, .condition: break
      case .name: try check.check(node, .string)
      case .notification:
        request.notificationNode = node
        var keys = FieldSlots<NotificationKey>()
        _ = try check.fields(of: node, PlainNotificationKey.table) { (key, value) throws(Rejection) in
          try check.check(value, .string)
          keys.set(key.key, value)
        }
        request.notification = keys
      case .data:
        try check.check(node, .data)
        request.dataNode = node
      case .apns: try request.blocks.readAPNs(node, check)
      case .android: try readAndroid(node, &request)
      case .webpush: try request.blocks.readWebpush(node, check)
      case .fcmOptions:
        try check.check(node, .options)
        request.fcmOptionsNode = node
      }
    }
    try TargetReader(check: check).readV1(
      token: slots[.token], topic: slots[.topic], condition: slots[.condition], &request)
    try checkSizes(request)
    return request
  }

  // MARK: Fields

  private func readAndroid(_ node: Int, _ request: inout SendRequest) throws(Rejection) {
    try request.blocks.readAndroid(node, check)
    if let key = request.blocks.android[.collapseKey] { _ = try collapseKey(key) }
    if let name = request.blocks.android[.restrictedPackageName] { _ = try packageName(name) }
  }

  /// GS-050.
  private func priority(_ node: Int) throws(Rejection) -> Priority {
    if document.isString(node, "high") { return .high }
    if document.isString(node, "normal") { return .normal }
    throw check.refusal(node, .invalidParameters, "expected \"high\" or \"normal\"")
  }

  /// GS-060; as a string too, since Google's own XMPP example sends one.
  private func timeToLive(_ node: Int) throws(Rejection) -> Int {
    guard let seconds = check.integer(node), seconds >= 0, seconds <= Int64(RequestLimits.longestTimeToLive) else {
      throw check.refusal(node, .invalidTTL, "expected an integer from 0 to \(RequestLimits.longestTimeToLive)")
    }
    return Int(seconds)
  }

  private func collapseKey(_ node: Int) throws(Rejection) -> Int? {
    guard document.kind(node) == .string else { throw check.wrongType(node, expected: "a string") }
    let key = document.string(node)
    guard key.count <= check.limits.collapseKeyBytes else {
      throw check.refusal(node, .invalidParameters, "\(key.count) bytes, at most \(check.limits.collapseKeyBytes) allowed")
    }
    guard TextForm.isPlainLine(key) else { throw check.refusal(node, .invalidParameters, "a control character in it") }
    return key.isEmpty ? nil : node
  }

  private func packageName(_ node: Int) throws(Rejection) -> Int? {
    guard document.kind(node) == .string else { throw check.wrongType(node, expected: "a string") }
    let name = document.string(node)
    guard !name.isEmpty else { return nil }
    guard TextForm.isPackageName(name) else { throw check.refusal(node, .invalidPackageName, "not the name of a package") }
    return node
  }

  private func readData(_ node: Int) throws(Rejection) {
    guard document.kind(node) == .object else { throw check.wrongType(node, expected: "an object") }
    for (name, _) in document.members(of: node) { try check.refuseReserved(name) }
  }

  // MARK: Sizes

  private func checkSizes(_ request: SendRequest) throws(Rejection) {
    if let node = request.notificationNode { try checkSize(of: node, check.limits.notificationBytes) }
    guard let node = request.dataNode else { return }
    switch request.targets {
    case .one(.topic), .condition: try checkSize(of: node, min(check.limits.dataBytes, check.limits.topicDataBytes))
    case .one, .list: try checkSize(of: node, check.limits.dataBytes)
    }
  }

  /// Keys and values as UTF-8 after unescaping; a value that isn't a string counts as its compact JSON, null as nothing.
  private func checkSize(of object: Int, _ most: Int) throws(Rejection) {
    if document.source(object).count <= most { return }
    var bytes = 0
    for (name, value) in document.members(of: object) {
      switch document.kind(value) {
      case .null: continue
      case .string: bytes += document.utf8Count(name) + document.utf8Count(value)
      default: bytes += document.utf8Count(name) + document.compactCount(value)
      }
    }
    guard bytes <= most else {
      throw check.refusal(object, .messageTooBig, "\(bytes) bytes of keys and values, at most \(most) allowed")
    }
  }
}
