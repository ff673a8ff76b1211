import PushCore

/// What a shard has done since it began.
public struct Counters: Sendable {
  /// What became of pushes and of requests, by application.
  package var pushes = PushCounts()
  package var ledger = RequestLedger()
  /// Pages of broadcasts that were begun.
  package var pages = 0
  public internal(set) var received = 0
  public internal(set) var redelivered = 0
  public internal(set) var duplicatesSuppressed = 0
  public internal(set) var delivered = 0
  /// Devices by the code their push ended with, indexed by the code's stable number.
  public internal(set) var failed: [Int] = Array(repeating: 0, count: 256)
  public internal(set) var postponed = 0
  public internal(set) var expired = 0
  public internal(set) var collapsed = 0
  public internal(set) var unknownOutcomes = 0
  public internal(set) var feedback = 0
  public internal(set) var deadLetters = 0
  public internal(set) var results = 0
  public internal(set) var retries = 0
  public internal(set) var repliesUnroutable = 0
  public internal(set) var parked = 0
  /// Requests that went to hold queues.
  public internal(set) var putToHold = 0
  public internal(set) var quarantined = 0
  public internal(set) var acknowledged = 0
  /// What devices have acknowledged: now, before, of no known device, and messages of it that couldn't be read.
  public internal(set) var acknowledgementsNoted = 0
  public internal(set) var acknowledgementsRepeated = 0
  public internal(set) var acknowledgementsUnknown = 0
  public internal(set) var acknowledgementsRefused = 0

  package init() {}

  /// Devices whose push ended in a failure; none that was withdrawn.
  public var failures: Int {
    failed.indices.reduce(0) { sum, index in
      PushError(code: UInt8(index))?.isWithdrawn == false ? sum + failed[index] : sum
    }
  }

  /// Devices without a delivery, withdrawn ones too, by the code's name.
  public var failuresByCode: [(code: String, count: Int)] {
    failed.indices.compactMap { index in
      guard failed[index] > 0, let code = PushError(code: UInt8(index)) else { return nil }
      return (code.rawValue, failed[index])
    }
  }

  package static func += (a: inout Counters, b: Counters) {
    for key in sums { a[keyPath: key] += b[keyPath: key] }
    a.pushes += b.pushes
    a.ledger += b.ledger
    for index in a.failed.indices { a.failed[index] += b.failed[index] }
  }

  private static var sums: [WritableKeyPath<Counters, Int>] {
    [
      \.received, \.redelivered, \.duplicatesSuppressed, \.delivered, \.postponed, \.expired, \.collapsed, \.unknownOutcomes,
      \.feedback,
      \.deadLetters, \.results, \.retries, \.repliesUnroutable, \.parked, \.putToHold, \.quarantined,
      \.pages, \.acknowledged, \.acknowledgementsNoted, \.acknowledgementsRepeated, \.acknowledgementsUnknown,
      \.acknowledgementsRefused,
    ]
  }
}
