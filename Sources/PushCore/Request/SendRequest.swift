/// How soon a message should reach its device. The raw value is the word on the wire.
public enum Priority: String, Sendable {
  case high, normal
}

/// A send request that has passed every check that needs no registry: GCM's shape and FCM v1's, made one.
///
/// Values stay where they are in the ``document``; what is asked for is a node, absent and null are the same. All nodes have the types
/// that their ``FieldName`` demands, so that a translator needs no checks of its own.
public struct SendRequest: Sendable {
  /// Which of the two shapes the body has.
  public enum Shape: Sendable {
    case gcm, fcmV1
  }

  public let document: JSONDocument
  public internal(set) var shape = Shape.gcm
  public internal(set) var targets: Targets
  /// Nil when the request doesn't say. Always nil in FCM v1's shape, where the blocks say.
  public internal(set) var priority: Priority?
  /// Seconds from 0 to ``RequestLimits/longestTimeToLive``; nil when absent (GS-061). Always nil in FCM v1's shape.
  public internal(set) var timeToLive: Int?
  /// `dry_run` or `validate_only`: validate, reach no device.
  public internal(set) var isDryRun = false
  public internal(set) var contentAvailable = false
  public internal(set) var mutableContent = false
  public internal(set) var delayWhileIdle = false
  /// Nodes of strings; empty ones count as absent.
  public internal(set) var collapseKeyNode: Int?
  public internal(set) var restrictedPackageNameNode: Int?

  /// The node of `notification`, an object. Present even when it is empty.
  public internal(set) var notificationNode: Int?
  /// The values of `notification` by key.
  public internal(set) var notification = FieldSlots<NotificationKey>()
  /// The node of `data`, an object. In FCM v1's shape all its values are strings.
  public internal(set) var dataNode: Int?
  var blocks: PlatformBlocks?
  /// FCM v1's `message.fcm_options`.
  public internal(set) var fcmOptionsNode: Int?

  /// It says nothing of a badge, and counts one as if it said `auto`.
  public internal(set) var countsBadge = false

  /// Nodes of names that are not known, where these are ignored.
  public internal(set) var ignoredNames: [Int] = []

  /// The node that names the target: `to`, `registration_ids`, `condition`, `token`, `fid`, `topic`.
  public internal(set) var targetNode: Int

  /// Parses and validates a body.
  public static func parse(_ body: [UInt8], limits: RequestLimits = RequestLimits()) -> Result<SendRequest, Rejection> {
    do { return .success(try SendRequest(parsing: body, limits: limits)) } catch { return .failure(error) }
  }

  /// As ``parse(_:limits:)``, thrown.
  public init(parsing body: [UInt8], limits: RequestLimits = RequestLimits()) throws(Rejection) {
    try self.init(try Self.document(body, limits.json), limits: limits)
  }

  /// A body as JSON, of which nothing more is known yet.
  public static func document(_ body: [UInt8], _ limits: JSONLimits) throws(Rejection) -> JSONDocument {
    guard body.count <= limits.bytes else {
      throw Rejection(.messageTooBig, "a body of \(body.count) bytes, at most \(limits.bytes) allowed")
    }
    do throws(JSONError) { return try JSONDocument(body, limits: limits) } catch {
      throw Rejection(.invalidJSON, error.description)
    }
  }

  /// Validates a body that was read within the same limits.
  public init(_ document: JSONDocument, limits: RequestLimits = RequestLimits()) throws(Rejection) {
    self.init(document: document)
    let reader = RequestReader(document: document, limits: limits, ignored: limits.ignoresUnknownNames ? IgnoredNames() : nil)
    try reader.read(into: &self)
  }

  init(document: JSONDocument) {
    self.document = document
    targets = .list([])
    targetNode = document.root
  }
}

extension SendRequest {
  public var collapseKey: [UInt8]? { collapseKeyNode.map(document.string) }
  public var restrictedPackageName: [UInt8]? { restrictedPackageNameNode.map(document.string) }

  /// Name and value of each member of `data`, in order.
  public var data: JSONDocument.Members { document.members(of: dataNode ?? targetNode) }

  /// `notification` is there, empty or not: the message is for people to see.
  public var hasNotification: Bool { notificationNode != nil }

  /// `badge` or `notification_count` as a number, whether it came as one or as a string.
  public func count(_ key: NotificationKey) -> Int? {
    notification[key].flatMap { try? RequestReader(document: document, limits: RequestLimits()).count($0) }
  }

  /// What `badge` asks of the devices' counters.
  public enum Badge: Sendable {
    /// One more for each device.
    case automatic
    case number(Int)
  }

  /// Nil where the request says nothing of it.
  public var badge: Badge? {
    guard let node = notification[.badge] else { return countsBadge ? .automatic : nil }
    return document.isString(node, "auto") ? .automatic : count(.badge).map { .number($0) }
  }

  /// What the counters are to be: what `apns.payload.aps` says of it is what iPhones show, and stands where `notification` says something
  /// else. Nil also where it takes the badge away.
  public var badgeOfCounter: Badge? {
    guard let payload = apns(.payload), let aps = document.value("aps", of: payload), document.kind(aps) == .object,
      let own = document.value("badge", of: aps)
    else { return badge }
    return (try? document.integer(own)).map { .number(Int($0)) }
  }

  /// A flag of `notification` that came as a boolean, as "true" or "false", or, from a lenient sender, as 0 or 1.
  public func flag(_ key: NotificationKey) -> Bool? {
    guard let node = notification[key] else { return nil }
    if document.kind(node) == .number { return (try? document.integer(node)) == 1 }
    return try? RequestReader(document: document, limits: RequestLimits()).looseBoolean(node)
  }

  /// Appends `title_loc_args` or one of its like as a JSON array of strings: numbers in quotes, an array inside a string unpacked
  /// (GS-092 to GS-095). Appends nothing and answers false when it is absent.
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

  /// The lifetime that `android.ttl` gives, in whole seconds; nil when absent.
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
