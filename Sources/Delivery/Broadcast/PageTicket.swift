import AMQP
import PushCore
import Wire

/// The part of an audience that a message on a fan-out queue or on the ladder is for. It is a header beside the unchanged
/// request.
struct PageTicket: Equatable {
  /// Empty for a small audience, which has no campaign.
  var campaign: [UInt8]
  var number: Int64
  /// Distinguishes copies of one page's message. After a crash the next page may be published again: only the copy that opens
  /// the page first counts.
  var copy: Int64
  /// Device numbers: the page begins after `after`, and the audience ends at `upTo`.
  var after: Int64
  var upTo: Int64
  /// Unix milliseconds, computed once.
  var deadline: Int64
  var isOfSeveralChains = false
  /// No page of its chain follows.
  var isLast = false
  /// Failures for which earlier pages of its chain have published a dead letter for all devices concerned.
  var reported: Set<PlatformFailure> = []
  /// The request has a collapse key, and it or an earlier page has waited, so a newer broadcast may have replaced it.
  var hasWaited = false
  /// Devices that earlier attempts at this page have settled.
  var sent: Int64 = 0
  var failed: Int64 = 0
  var failures: [Device] = []
  /// Failures by code; incomplete if an earlier delivery was interrupted.
  var failureCounts: [FailureCount] = []
  /// The devices that remain; nil for a page that isn't begun, empty if only the report is owed.
  var pending: [Device]?

  /// A registration in short form. A number may be reused for another device; its salt isn't.
  struct Device: Equatable {
    var id: Int64
    var salt: Int64
  }

  func next(after cursor: Int64, using random: inout RandomSource) -> PageTicket {
    var next = PageTicket(campaign: campaign, number: number + 1, after: cursor, upTo: upTo, deadline: deadline, using: &random)
    next.isOfSeveralChains = isOfSeveralChains
    next.reported = reported
    return next
  }
}

extension PageTicket {
  init(
    campaign: [UInt8], number: Int64, after: Int64, upTo: Int64, deadline: Int64, using random: inout RandomSource
  ) {
    let copy = Int64.random(in: 1 ... .max, using: &random)
    self.init(campaign: campaign, number: number, copy: copy, after: after, upTo: upTo, deadline: deadline)
  }
}

/// The header's binary form. It is compact because a page may have thousands of pending devices and a frame has 128 KiB.
extension PageTicket {
  static let header = "x-push-page"
  /// A small audience's failures. Earlier builds ignore this header.
  private static let failuresHeader = "x-push-page-failures"
  /// The ``failureCounts``, ten bytes each. Earlier builds ignore this header.
  private static let countsHeader = "x-push-page-codes"
  /// The ``reported`` failures without a flag, two bytes each: platform and cause. Earlier builds ignore this header.
  private static let reportedHeader = "x-push-page-reported"
  /// Present if the page ``hasWaited``. Earlier builds ignore this header.
  private static let waitedHeader = "x-push-page-waited"
  /// A number of pending devices that fits a frame beside any other headers.
  static let mostPending = 5_000

  /// Increases when the form changes. A worker leaves a newer form to newer workers. A page of several chains has the form of
  /// the version before, but earlier builds would take the end of its chain for the end of its campaign.
  private static let version: UInt8 = 3
  private static let versionOfOneChain: UInt8 = 2
  /// The valid range of page numbers and counts; sums of them can't overflow.
  private static let counts: ClosedRange<Int64> = 0...(1 << 48)

  private enum Flag {
    static let isLast: UInt8 = 1
    static let isBegun: UInt8 = 2
    /// Earlier builds don't know the last four flags and publish those dead letters again.
    static let reported: [(flag: UInt8, failure: PlatformFailure)] = [
      (4, .init(platform: .apns, cause: .untranslatable)), (8, .init(platform: .fcm, cause: .untranslatable)),
      (16, .init(platform: .apns, cause: .noCredential)), (32, .init(platform: .fcm, cause: .noCredential)),
      (64, .init(platform: .apns, cause: .otherSender)), (128, .init(platform: .fcm, cause: .otherSender)),
    ]
  }

  enum Reading: Equatable {
    case absent
    case newer
    case unreadable
    case ticket(PageTicket)
  }

  static func read(_ headers: FieldTable) -> Reading {
    guard let value = headers[header] else { return .absent }
    guard case .string(let bytes) = value, let version = bytes.first else { return .unreadable }
    if version > Self.version { return .newer }
    guard version >= Self.versionOfOneChain, var ticket = PageTicket(bytes) else { return .unreadable }
    ticket.isOfSeveralChains = version == Self.version
    ticket.hasWaited = headers[waitedHeader] != nil
    if let bytes = headers.string(reportedHeader) {
      for place in stride(from: 0, to: bytes.count - 1, by: 2) {
        if let platform = Platform(rawValue: bytes[place]), let cause = PlatformFailure.Cause(rawValue: bytes[place + 1]) {
          ticket.reported.insert(PlatformFailure(platform: platform, cause: cause))
        }
      }
    }
    if let bytes = headers.string(failuresHeader) {
      guard let failures = devices(bytes[...]), failures.count <= ticket.failed else { return .unreadable }
      ticket.failures = failures
    }
    if let bytes = headers.string(countsHeader) {
      guard let counts = failureCounts(bytes[...]) else { return .unreadable }
      ticket.failureCounts = counts
    }
    return .ticket(ticket)
  }

  private init?(_ bytes: [UInt8]) {
    var rest = bytes.dropFirst()
    guard let flags = rest.popFirst(), let number = rest.takeNumber(), let copy = rest.takeNumber(),
      let after = rest.takeNumber(), let upTo = rest.takeNumber(), let deadline = rest.takeNumber(),
      let sent = rest.takeNumber(), let failed = rest.takeNumber(), let length = rest.popFirst(),
      let campaign = rest.take(Int(length)), Self.counts.contains(number), Self.counts.contains(sent),
      Self.counts.contains(failed)
    else { return nil }
    self.init(campaign: Array(campaign), number: number, copy: copy, after: after, upTo: upTo, deadline: deadline)
    self.sent = sent
    self.failed = failed
    isLast = flags & Flag.isLast != 0
    for (flag, failure) in Flag.reported where flags & flag != 0 { reported.insert(failure) }
    guard flags & Flag.isBegun != 0 else {
      guard rest.isEmpty else { return nil }
      return
    }
    guard let pending = Self.devices(rest) else { return nil }
    self.pending = pending
  }

  func append(to headers: inout FieldTable) {
    var flags = (isLast ? Flag.isLast : 0) | (pending == nil ? 0 : Flag.isBegun)
    for (flag, failure) in Flag.reported where reported.contains(failure) { flags |= flag }
    var bytes = [isOfSeveralChains ? Self.version : Self.versionOfOneChain, flags]
    bytes.reserveCapacity(64 + campaign.count + 16 * (pending?.count ?? 0))
    for value in [number, copy, after, upTo, deadline, sent, failed] { bytes.appendBigEndian(value) }
    bytes.append(UInt8(truncatingIfNeeded: campaign.count))
    bytes.append(contentsOf: campaign)
    bytes.append(devices: pending ?? [])
    headers.append(Self.header, .string(bytes))
    if hasWaited { headers.append(Self.waitedHeader, .integer(1)) }
    let others = reported.filter { failure in !Flag.reported.contains { $0.failure == failure } }
    if !others.isEmpty {
      headers.append(Self.reportedHeader, .string(others.flatMap { [$0.platform.rawValue, $0.cause.rawValue] }))
    }
    if !failureCounts.isEmpty {
      var counts: [UInt8] = []
      for count in failureCounts {
        counts.append(count.platform.map { $0.rawValue + 1 } ?? 0)
        counts.append(count.error.code)
        counts.appendBigEndian(count.devices)
      }
      headers.append(Self.countsHeader, .string(counts))
    }
    guard !failures.isEmpty else { return }
    var failed: [UInt8] = []
    failed.append(devices: failures)
    headers.append(Self.failuresHeader, .string(failed))
  }

  private static func failureCounts(_ bytes: ArraySlice<UInt8>) -> [FailureCount]? {
    var counts: [FailureCount] = []
    var rest = bytes
    while let platform = rest.popFirst() {
      guard let error = rest.popFirst().flatMap({ PushError(code: $0) }), let devices = rest.takeNumber(),
        Self.counts.contains(devices)
      else { return nil }
      counts.add(error, on: platform == 0 ? nil : Platform(rawValue: platform - 1), devices: devices)
    }
    return counts
  }

  private static func devices(_ bytes: ArraySlice<UInt8>) -> [Device]? {
    var devices: [Device] = []
    var rest = bytes
    while !rest.isEmpty {
      guard let id = rest.takeNumber(), let salt = rest.takeNumber() else { return nil }
      devices.append(Device(id: id, salt: salt))
    }
    return devices
  }
}

/// Reads workers' notes.
extension ArraySlice<UInt8> {
  /// Removes the first bytes and returns them; nil if there are fewer.
  mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
    guard count <= self.count else { return nil }
    defer { removeFirst(count) }
    return prefix(count)
  }

  /// Removes a big-endian number and returns it; nil if there are fewer bytes.
  mutating func takeNumber(bytes: Int = 8) -> Int64? { take(bytes)?.reduce(0) { $0 << 8 | Int64($1) } }
}

extension [UInt8] {
  fileprivate mutating func append(devices: [PageTicket.Device]) {
    for device in devices {
      appendBigEndian(device.id)
      appendBigEndian(device.salt)
    }
  }
}
