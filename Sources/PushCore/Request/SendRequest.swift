/// The urgency of a message. The raw value is the word in JSON.
public enum Priority: String, Sendable {
  case high, normal
}

/// A validated send request in either shape, GCM's or FCM v1's. Passed all checks that need no registry.
///
/// Values stay in the ``document``; properties are nodes, and null counts as absent. All nodes have the types that their
/// ``FieldName`` demands, so a translator checks nothing. A class, so that it is never copied; it doesn't change once it is read.
public final class SendRequest {
  public enum Shape: Sendable {
    case gcm, fcmV1
  }

  public let document: JSONDocument
  public internal(set) var shape = Shape.gcm
  public internal(set) var targets: Targets
  /// Nil if absent. Always nil in FCM v1's shape, whose blocks have it.
  public internal(set) var priority: Priority?
  /// Seconds from 0 to ``RequestLimits/longestTimeToLive``; nil if absent (GS-061). Always nil in FCM v1's shape.
  public internal(set) var timeToLive: Int?
  /// `dry_run` or `validate_only`: validates without sending to a device.
  public internal(set) var isDryRun = false
  public internal(set) var contentAvailable = false
  public internal(set) var mutableContent = false
  public internal(set) var delayWhileIdle = false
  /// Nodes of strings; empty strings count as absent.
  public internal(set) var collapseKeyNode: Int?
  public internal(set) var restrictedPackageNameNode: Int?

  /// The node of `notification`, an object, which may be empty.
  public internal(set) var notificationNode: Int?
  public internal(set) var notification = FieldSlots<NotificationKey>()
  /// The node of `data`, an object. In FCM v1's shape all its values are strings.
  public internal(set) var dataNode: Int?
  var blocks: PlatformBlocks?
  /// FCM v1's `message.fcm_options`.
  public internal(set) var fcmOptionsNode: Int?

  /// True if the request has no badge but is treated like `auto`.
  public internal(set) var countsBadge = false

  /// The nodes of unknown names, if these are ignored.
  public internal(set) var ignoredNames: [Int] = []

  /// The node that names the target: `to`, `registration_ids`, `condition`, `token`, `fid`, `topic`.
  public internal(set) var targetNode: Int

  public static func parse(_ body: [UInt8], limits: RequestLimits = RequestLimits()) -> Result<SendRequest, Rejection> {
    do { return .success(try SendRequest(parsing: body, limits: limits)) } catch { return .failure(error) }
  }

  public convenience init(parsing body: [UInt8], limits: RequestLimits = RequestLimits()) throws(Rejection) {
    try self.init(try Self.document(body, limits.json), limits: limits)
  }

  /// Parses a body as JSON without further validation.
  public static func document(_ body: [UInt8], _ limits: JSONLimits) throws(Rejection) -> JSONDocument {
    guard body.count <= limits.bytes else {
      throw Rejection(.messageTooBig, "a body of \(body.count) bytes, at most \(limits.bytes) allowed")
    }
    do throws(JSONError) { return try JSONDocument(body, limits: limits) } catch {
      throw Rejection(.invalidJSON, error.description)
    }
  }

  /// Validates a document that was parsed with the same limits.
  public init(_ document: JSONDocument, limits: RequestLimits = RequestLimits()) throws(Rejection) {
    self.document = document
    targets = .list([])
    targetNode = document.root
    let reader = RequestReader(document: document, limits: limits, ignored: limits.ignoresUnknownNames ? self : nil)
    try reader.read(into: self)
  }

  public var collapseKey: [UInt8]? { collapseKeyNode.map(document.string) }
  public var restrictedPackageName: [UInt8]? {
    guard let node = packageNode else { return nil }
    return document.string(node)
  }
  var packageNode: Int? { android(.restrictedPackageName) ?? restrictedPackageNameNode }

  /// False if the request names another package.
  public func isOnly(for packages: [[UInt8]]) -> Bool {
    guard packageNode != nil else { return true }
    return [android(.restrictedPackageName), restrictedPackageNameNode].allSatisfy { node in
      node.map { packages.contains(document.string($0)) } ?? true
    }
  }

  /// The `apns-topic` of the request.
  public var topic: [UInt8]? {
    guard let node = apnsHeader(.apnsTopic) else { return nil }
    return document.string(node)
  }

  /// Name and value of each member of `data`, in order.
  public var data: JSONDocument.Members { document.members(of: dataNode ?? targetNode) }

  /// True if `notification` is present, even if empty: the message is for people to see.
  public var hasNotification: Bool { notificationNode != nil }

  /// `badge` or `notification_count` as a number, also if sent as a string.
  public func count(_ key: NotificationKey) -> Int? {
    notification[key].flatMap { try? RequestReader(document: document, limits: RequestLimits()).count($0) }
  }

  /// The effect of `badge` on the device's counter.
  public enum Badge: Sendable {
    /// Increments the counter of each device.
    case automatic
    case number(Int)
  }

  /// Nil if absent.
  public var badge: Badge? {
    guard let node = notification[.badge] else { return countsBadge ? .automatic : nil }
    return document.isString(node, "auto") ? .automatic : count(.badge).map { .number($0) }
  }

  /// The new value of the counters. A badge in `apns.payload.aps`, which iPhones show, overrides `notification`. Nil also if it
  /// removes the badge.
  public internal(set) var badgeOfCounter: Badge?

  /// Computes `badgeOfCounter`.
  func findBadgeOfCounter() -> Badge? {
    guard let payload = apns(.payload), let aps = document.value("aps", of: payload), document.kind(aps) == .object,
      let own = document.value("badge", of: aps)
    else { return badge }
    return document.integer(own).map { .number(Int($0)) }
  }

  /// A flag of `notification`, sent as a boolean, as "true" or "false", or, by a lenient sender, as 0 or 1.
  public func flag(_ key: NotificationKey) -> Bool? {
    guard let node = notification[key] else { return nil }
    if document.kind(node) == .number { return document.integer(node) == 1 }
    return try? RequestReader(document: document, limits: RequestLimits()).looseBoolean(node)
  }

  /// The node of a key of `notification` whose value is an `https` URL; nil for any other value.
  func secureURL(_ key: NotificationKey) -> Int? {
    guard let node = notification[key] else { return nil }
    // The first letter excludes most icons and actions cheaply.
    guard let first = document.bytes[document.source(node)].first,
      first | 0x20 == UInt8(ascii: "h") || first == UInt8(ascii: "\\"),
      TextForm.isSecureURL(document.string(node))
    else { return nil }
    return node
  }

  /// Appends `title_loc_args` or a similar field as a JSON array of strings: puts numbers in quotes and unpacks an array inside
  /// a string (GS-092 to GS-095). Returns false if the field is absent.
  public func appendArguments(_ key: NotificationKey, to output: inout [UInt8]) -> Bool {
    guard let node = notification[key] else { return false }
    if document.kind(node) == .string {
      guard let inner = try? JSONDocument(document.string(node)) else { return false }
      inner.appendStrings(inner.root, to: &output)
    } else {
      document.appendStrings(node, to: &output)
    }
    return true
  }

  /// The value of `android.ttl` in whole seconds; nil if absent.
  public var androidTimeToLive: Int? {
    android(.ttl).flatMap { TextForm.durationSeconds(document.string($0)) }
  }
}

extension JSONDocument {
  /// Appends an array of scalars as an array of strings.
  func appendStrings(_ array: Int, to output: inout [UInt8]) {
    output.append(UInt8(ascii: "["))
    for element in elements(of: array) {
      if element != array &+ 1 { output.append(UInt8(ascii: ",")) }
      appendQuoted(element, to: &output)
    }
    output.append(UInt8(ascii: "]"))
  }
}
