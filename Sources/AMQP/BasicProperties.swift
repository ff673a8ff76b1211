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

private enum Flag {
  static let contentType: UInt16 = 1 << 15
  static let contentEncoding: UInt16 = 1 << 14
  static let headers: UInt16 = 1 << 13
  static let deliveryMode: UInt16 = 1 << 12
  static let priority: UInt16 = 1 << 11
  static let correlationID: UInt16 = 1 << 10
  static let replyTo: UInt16 = 1 << 9
  static let expiration: UInt16 = 1 << 8
  static let messageID: UInt16 = 1 << 7
  static let timestamp: UInt16 = 1 << 6
  static let type: UInt16 = 1 << 5
  static let userID: UInt16 = 1 << 4
  static let appID: UInt16 = 1 << 3
  static let clusterID: UInt16 = 1 << 2
  static let undefined: UInt16 = 1 << 1 | 1
}

/// Keeps the last value of a property that rarely changes between messages, to avoid allocations.
struct RepeatedBytes {
  private var last: [UInt8] = []

  mutating func read(_ range: Range<Int>, in bytes: RawSpan) -> [UInt8] {
    if !bytes.equals(range, last) { last = bytes.array(range) }
    return last
  }
}

struct PropertyCache {
  var contentType = RepeatedBytes()
  var replyTo = RepeatedBytes()
  var appID = RepeatedBytes()
}

extension BasicProperties {
  /// Reads the part of a content header frame after the body size, over properties that are all absent. Returns false if it is
  /// malformed.
  mutating func read(_ cursor: inout WireCursor, in bytes: RawSpan, cache: inout PropertyCache) -> Bool {
    let flags = cursor.uint16(in: bytes)
    guard flags & Flag.undefined == 0 else { return false }
    if flags & Flag.contentType != 0 { contentType = cache.contentType.read(cursor.shortString(in: bytes), in: bytes) }
    if flags & Flag.contentEncoding != 0 { contentEncoding = bytes.array(cursor.shortString(in: bytes)) }
    if flags & Flag.headers != 0 {
      let range = cursor.longString(in: bytes)
      if let table = FieldTable(validating: bytes, range: range) {
        headers = table
      } else {
        headers = FieldTable(readableIn: bytes, range: range)
        hasUnreadableHeaders = true
      }
    }
    if flags & Flag.deliveryMode != 0 { deliveryMode = cursor.uint8(in: bytes) }
    if flags & Flag.priority != 0 { priority = cursor.uint8(in: bytes) }
    if flags & Flag.correlationID != 0 { correlationID = bytes.array(cursor.shortString(in: bytes)) }
    if flags & Flag.replyTo != 0 { replyTo = cache.replyTo.read(cursor.shortString(in: bytes), in: bytes) }
    if flags & Flag.expiration != 0 { expiration = bytes.array(cursor.shortString(in: bytes)) }
    if flags & Flag.messageID != 0 { messageID = bytes.array(cursor.shortString(in: bytes)) }
    if flags & Flag.timestamp != 0 { timestamp = cursor.uint64(in: bytes) }
    if flags & Flag.type != 0 { type = bytes.array(cursor.shortString(in: bytes)) }
    if flags & Flag.userID != 0 { userID = bytes.array(cursor.shortString(in: bytes)) }
    if flags & Flag.appID != 0 { appID = cache.appID.read(cursor.shortString(in: bytes), in: bytes) }
    if flags & Flag.clusterID != 0 { _ = cursor.shortString(in: bytes) }
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
    func short(_ bytes: [UInt8]?, _ flag: UInt16, _ output: inout [UInt8]) {
      guard let bytes else { return }
      flags |= flag
      output.appendShortString(bytes)
    }
    short(contentType, Flag.contentType, &output)
    short(contentEncoding, Flag.contentEncoding, &output)
    if !headers.isEmpty {
      flags |= Flag.headers
      output.appendLongString(headers.encoded)
    }
    if let deliveryMode {
      flags |= Flag.deliveryMode
      output.append(deliveryMode)
    }
    if let priority {
      flags |= Flag.priority
      output.append(priority)
    }
    short(correlationID, Flag.correlationID, &output)
    short(replyTo, Flag.replyTo, &output)
    short(expiration, Flag.expiration, &output)
    short(messageID, Flag.messageID, &output)
    if let timestamp {
      flags |= Flag.timestamp
      output.appendBigEndian(timestamp)
    }
    short(type, Flag.type, &output)
    short(userID, Flag.userID, &output)
    short(appID, Flag.appID, &output)
    output[flagsAt] = UInt8(flags >> 8)
    output[flagsAt + 1] = UInt8(flags & 0xff)
  }
}
