import Wire

/// Replies that may end the connection: those in flight when the broker closed the channel or connection with an error, and direct
/// replies to unknown nodes. Producers choose the queue of a reply, so one of them is probably the cause. They are published one at
/// a time, and a reply that causes it again is dropped.
///
/// RabbitMQ 3.10 ends the connection of a publisher with an internal error (541) if the address of a direct reply names a node that it
/// doesn't know: one that has ended, one of another broker, or a forged one. Such a node gets no replies for a while.
struct ReplySuspects: ~Copyable {
  enum Standing {
    case known, unknown
    /// Replies are to be given up.
    case refused
  }

  private static let prefix = Array("amq.rabbitmq.reply-to.".utf8)
  /// An address is the base64 of a process's id. Its last bytes are numbers of the process, and the node's name is before them.
  private static let bytesOfProcess = 12
  /// Seconds for which a node is refused, and within which a few ended connections make all unknown nodes refused.
  private static let pause = 30.0
  private static let mostEnds = 3
  private static let mostNodes = 256

  /// Slots in the outbox.
  var waiting = Ring<Int>()
  var inFlight: Int?
  /// When a suspect last ended a connection.
  private(set) var causeFoundAt: MonotonicTime?
  private var known: Set<ArraySlice<UInt8>> = []
  private var refused: [ArraySlice<UInt8>: MonotonicTime] = [:]
  /// The last times at which a reply ended a connection.
  private var ends: [MonotonicTime] = []

  static func isDirect(_ publication: Publication) -> Bool {
    publication.kind == .reply && publication.routingKey.starts(with: prefix)
  }

  /// Nil if the publication is no direct reply.
  private static func node(of publication: Publication) -> ArraySlice<UInt8>? {
    guard isDirect(publication) else { return nil }
    let address = publication.routingKey.dropFirst(prefix.count)
    let process = address[..<(address.lastIndex(of: UInt8(ascii: ".")) ?? address.endIndex)]
    return Base64URL.decode(process, isLenient: true)?.dropLast(bytesOfProcess) ?? process
  }

  func standing(of publication: Publication, at now: MonotonicTime) -> Standing {
    guard let node = Self.node(of: publication) else { return .known }
    if let until = refused[node], now < until { return .refused }
    if known.contains(node) { return .known }
    let isOften = ends.count == Self.mostEnds && now.seconds(since: ends[0]) < Self.pause
    return isOften ? .refused : .unknown
  }

  /// The broker has processed the publication.
  mutating func processed(_ publication: Publication) {
    guard let node = Self.node(of: publication), !known.contains(node) else { return }
    if known.count >= Self.mostNodes { known = [] }
    known.insert(node)
  }

  /// The connection ended while the publication was unconfirmed.
  mutating func doubt(_ publication: Publication) {
    if let node = Self.node(of: publication) { known.remove(node) }
  }

  /// The publication ended the connection.
  mutating func endedConnection(_ publication: Publication, at now: MonotonicTime) {
    causeFoundAt = now
    guard let node = Self.node(of: publication) else { return }
    known.remove(node)
    if refused.count >= Self.mostNodes { refused = [:] }
    refused[node] = now.advanced(bySeconds: Self.pause)
    ends = ends.suffix(Self.mostEnds - 1) + [now]
  }
}
