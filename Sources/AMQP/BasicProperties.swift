/// The properties of a message (AMQP 0-9-1, class basic). Strings are raw bytes, at most 255 each.
public struct BasicProperties: Equatable, Sendable {
  public var contentType: [UInt8]?
  public var contentEncoding: [UInt8]?
  public var headers = FieldTable()
  /// 2 means persistent.
  public var deliveryMode: UInt8?
  public var priority: UInt8?
  public var correlationID: [UInt8]?
  public var replyTo: [UInt8]?
  /// Milliseconds as decimal digits; RabbitMQ closes the channel on anything else.
  public var expiration: [UInt8]?
  public var messageID: [UInt8]?
  /// Seconds since 1970, by the publisher's clock.
  public var timestamp: UInt64?
  public var type: [UInt8]?
  /// RabbitMQ closes the channel if this isn't the connection's own user. Don't copy it from a delivery.
  public var userID: [UInt8]?
  public var appID: [UInt8]?
  /// True if the received headers were malformed or nested too deep. `headers` then has the readable ones.
  public var hasUnreadableHeaders = false
  /// Size of the received headers in bytes if the reader left some out because they were too many; otherwise 0.
  public var omittedHeaders = 0

  public init() {}
}

extension UInt16 {
  /// Removes the highest flag. A content header has a flag for each property, in the order of the specification (`basic`).
  fileprivate mutating func takeFlag() -> Bool {
    defer { self <<= 1 }
    return self & 1 << 15 != 0
  }

  fileprivate mutating func addFlag(_ isThere: Bool) { self = self << 1 | (isThere ? 1 : 0) }
}

/// Keeps the last value of a property that rarely changes between messages, to avoid allocations.
struct RepeatedBytes {
  private var last: [UInt8] = []

  mutating func read(_ range: Range<Int>, in bytes: RawSpan) -> [UInt8] {
    if !bytes.extracting(range).equals(last) { last = bytes.array(range) }
    return last
  }
}

struct PropertyCache {
  var contentType = RepeatedBytes()
  var replyTo = RepeatedBytes()
  var appID = RepeatedBytes()
}

extension BasicProperties {
  /// The number of flags after the application's: one for the cluster's id and two that no property has.
  private static let unusedFlags = 3
  private static let undefinedFlags: UInt16 = 1 << 1 | 1

  /// Reads the part of a content header frame after the body size, over properties that are all absent. Returns false if it is
  /// malformed.
  mutating func read(_ cursor: inout WireCursor, in bytes: RawSpan, cache: inout PropertyCache) -> Bool {
    var flags = cursor.uint16(in: bytes)
    guard flags & Self.undefinedFlags == 0 else { return false }
    if flags.takeFlag() { contentType = cache.contentType.read(cursor.shortString(in: bytes), in: bytes) }
    if flags.takeFlag() { contentEncoding = bytes.array(cursor.shortString(in: bytes)) }
    if flags.takeFlag() {
      let range = cursor.longString(in: bytes)
      if let table = FieldTable(validating: bytes, range: range) {
        headers = table
      } else {
        headers = FieldTable(readableIn: bytes, range: range)
        hasUnreadableHeaders = true
      }
    }
    if flags.takeFlag() { deliveryMode = cursor.uint8(in: bytes) }
    if flags.takeFlag() { priority = cursor.uint8(in: bytes) }
    if flags.takeFlag() { correlationID = bytes.array(cursor.shortString(in: bytes)) }
    if flags.takeFlag() { replyTo = cache.replyTo.read(cursor.shortString(in: bytes), in: bytes) }
    if flags.takeFlag() { expiration = bytes.array(cursor.shortString(in: bytes)) }
    if flags.takeFlag() { messageID = bytes.array(cursor.shortString(in: bytes)) }
    if flags.takeFlag() { timestamp = cursor.uint64(in: bytes) }
    if flags.takeFlag() { type = bytes.array(cursor.shortString(in: bytes)) }
    if flags.takeFlag() { userID = bytes.array(cursor.shortString(in: bytes)) }
    if flags.takeFlag() { appID = cache.appID.read(cursor.shortString(in: bytes), in: bytes) }
    // The cluster's id, which nobody uses.
    if flags.takeFlag() { _ = cursor.shortString(in: bytes) }
    return !cursor.isBroken && cursor.isAtEnd
  }

  package init?(encoded: [UInt8]) {
    var cursor = WireCursor(0..<encoded.count)
    var cache = PropertyCache()
    self.init()
    guard read(&cursor, in: encoded.span.bytes, cache: &cache) else { return nil }
  }

  package var encoded: [UInt8] {
    var output: [UInt8] = []
    append(to: &output)
    return output
  }

  var isEncodable: Bool {
    func fits(_ bytes: [UInt8]?) -> Bool { bytes.map { $0.count <= 255 } ?? true }
    return fits(contentType) && fits(contentEncoding) && fits(correlationID) && fits(replyTo) && fits(expiration)
      && fits(messageID) && fits(type) && fits(userID) && fits(appID)
  }

  func append(to output: inout [UInt8]) {
    let flagsAt = output.count
    output.appendBigEndian(UInt16(0))
    var flags: UInt16 = 0
    func short(_ bytes: [UInt8]?, _ output: inout [UInt8]) {
      flags.addFlag(bytes != nil)
      if let bytes { output.appendShortString(bytes) }
    }
    short(contentType, &output)
    short(contentEncoding, &output)
    flags.addFlag(!headers.isEmpty)
    if !headers.isEmpty { output.appendLongString(headers.encoded) }
    flags.addFlag(deliveryMode != nil)
    if let deliveryMode { output.append(deliveryMode) }
    flags.addFlag(priority != nil)
    if let priority { output.append(priority) }
    short(correlationID, &output)
    short(replyTo, &output)
    short(expiration, &output)
    short(messageID, &output)
    flags.addFlag(timestamp != nil)
    if let timestamp { output.appendBigEndian(timestamp) }
    short(type, &output)
    short(userID, &output)
    short(appID, &output)
    flags <<= Self.unusedFlags
    output[flagsAt] = UInt8(flags >> 8)
    output[flagsAt + 1] = UInt8(flags & 0xff)
  }
}
