import AMQP

/// Which part of an audience a message on a fan-out queue, or on the ladder, stands for; it travels in one header beside the
/// request as it came.
struct PageTicket: Equatable {
  static let header = "x-push-page"

  /// Empty for an audience small enough to be sent within its request, which needs no account of its own.
  var campaign: [UInt8]
  /// From 0.
  var number: Int64
  /// Device numbers: the page begins above `after` and the audience ends at `upTo`.
  var after: Int64
  var upTo: Int64
  /// Unix milliseconds; reckoned once, from the producer's timestamp.
  var deadline: Int64
  /// No page follows.
  var isLast = false
  /// What earlier rounds have settled of this page.
  var sent: Int64 = 0
  var failed: Int64 = 0
  /// Unix milliseconds at which a worker last found the campaign held or paused; goes on to the pages after, so that every worker
  /// learns that it was resumed.
  var stoppedAt: Int64?
  /// The devices that are left of a page that was begun, by number; nil for a page not yet begun.
  var pending: [Int64]?

  /// The page after this one.
  func next(after cursor: Int64) -> PageTicket {
    var next = PageTicket(campaign: campaign, number: number + 1, after: cursor, upTo: upTo, deadline: deadline)
    next.stoppedAt = stoppedAt
    return next
  }

  init(campaign: [UInt8], number: Int64, after: Int64, upTo: Int64, deadline: Int64) {
    self.campaign = campaign
    self.number = number
    self.after = after
    self.upTo = upTo
    self.deadline = deadline
  }

  // MARK: in a header

  /// Grows when the form changes; a worker leaves a form that it doesn't know to a newer one.
  private static let version: UInt8 = 1

  /// nil when there is none, or none that can be read.
  init?(_ headers: FieldTable) {
    guard let bytes = headers.string(Self.header), bytes.first == Self.version else { return nil }
    var reader = Reader(bytes: bytes, at: 1)
    guard let flags = reader.byte(), let number = reader.integer(), let after = reader.integer(), let upTo = reader.integer(),
      let deadline = reader.integer(), let sent = reader.integer(), let failed = reader.integer(), let length = reader.byte(),
      let campaign = reader.bytes(Int(length)), number >= 0, sent >= 0, failed >= 0
    else { return nil }
    self.init(campaign: campaign, number: number, after: after, upTo: upTo, deadline: deadline)
    self.sent = sent
    self.failed = failed
    isLast = flags & 1 != 0
    if flags & 4 != 0 {
      guard let stoppedAt = reader.integer() else { return nil }
      self.stoppedAt = stoppedAt
    }
    guard flags & 2 != 0 else { return }
    var pending: [Int64] = []
    while let id = reader.integer() { pending.append(id) }
    self.pending = pending
  }

  func append(to headers: inout FieldTable) {
    var bytes: [UInt8] = [Self.version, (isLast ? 1 : 0) | (pending == nil ? 0 : 2) | (stoppedAt == nil ? 0 : 4)]
    for value in [number, after, upTo, deadline, sent, failed] { Self.append(value, to: &bytes) }
    bytes.append(UInt8(truncatingIfNeeded: campaign.count))
    bytes.append(contentsOf: campaign)
    if let stoppedAt { Self.append(stoppedAt, to: &bytes) }
    for id in pending ?? [] { Self.append(id, to: &bytes) }
    headers.append(Self.header, .string(bytes))
  }

  private static func append(_ value: Int64, to bytes: inout [UInt8]) {
    for shift in stride(from: Int64(56), through: 0, by: -8) { bytes.append(UInt8(truncatingIfNeeded: value >> shift)) }
  }

  private struct Reader {
    let bytes: [UInt8]
    var at: Int

    mutating func byte() -> UInt8? {
      guard at < bytes.count else { return nil }
      defer { at += 1 }
      return bytes[at]
    }

    mutating func bytes(_ count: Int) -> [UInt8]? {
      guard count <= bytes.count - at else { return nil }
      defer { at += count }
      return Array(bytes[at..<at + count])
    }

    mutating func integer() -> Int64? {
      guard let bytes = bytes(8) else { return nil }
      return bytes.reduce(0) { $0 << 8 | Int64($1) }
    }
  }
}
