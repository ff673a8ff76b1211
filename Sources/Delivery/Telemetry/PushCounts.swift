import Broker
import PushCore

/// Counts pushes by application, provider, lane and code, in one array, so that counting is a single addition.
package struct PushCounts: Sendable {
  /// The providers of pushes; nil for those that ended before it was known.
  package static let providers: [Platform?] = Platform.allCases + [nil]

  package enum Lane: Int, CaseIterable, Sendable {
    case high, normal

    init(_ queue: WorkQueue) { self = queue.isHigh ? .high : .normal }

    package var name: String { self == .high ? "high" : "normal" }
  }

  package enum Field {
    case delivered
    case parked
    case failed(PushError)
    /// The push is retried after the code.
    case retried(PushError)
    case deadLetter(PushError)

    fileprivate var index: Int {
      switch self {
      case .delivered: 0
      case .parked: 1
      case .failed(let code): PushCounts.first + Int(code.code)
      case .retried(let code): PushCounts.first + PushCounts.codes + Int(code.code)
      case .deadLetter(let code): PushCounts.first + 2 * PushCounts.codes + Int(code.code)
      }
    }
  }

  private static let first = 2
  /// Greater than every code's number.
  private static let codes = 1 + Int(PushError.allCases.map(\.code).max() ?? 0)
  private static let width = first + 3 * codes
  private static let lanes = Lane.allCases.count
  private static let widthOfSeries = (Platform.allCases.count + 1) * lanes * width

  private var amounts: [Int] = []

  private static func place(_ field: Field, _ series: Int, _ provider: Platform?, _ lane: Lane) -> Int {
    let provider = provider.map { Int($0.rawValue) } ?? Platform.allCases.count
    return series * widthOfSeries + (provider * lanes + lane.rawValue) * width + field.index
  }

  /// - Parameter series: the application's number in ``AppSeries``.
  mutating func add(_ field: Field, _ series: Int, _ provider: Platform?, _ lane: Lane, times: Int = 1) {
    amounts.grow(to: (series + 1) * Self.widthOfSeries)
    amounts[Self.place(field, series, provider, lane)] += times
  }

  package func amount(_ field: Field, _ series: Int, _ provider: Platform?, _ lane: Lane) -> Int {
    amounts.amount(at: Self.place(field, series, provider, lane))
  }

  /// The events of a series, with all providers and lanes.
  package func total(_ field: Field, _ series: Int) -> Int {
    let start = series * Self.widthOfSeries + field.index
    return stride(from: start, to: start + Self.widthOfSeries, by: Self.width).reduce(0) { $0 + amounts.amount(at: $1) }
  }

  /// The events of all applications, providers and lanes.
  func total(_ field: Field) -> Int {
    stride(from: field.index, to: amounts.count, by: Self.width).reduce(0) { $0 + amounts[$1] }
  }

  static func += (a: inout PushCounts, b: PushCounts) { a.amounts.add(b.amounts) }
}

/// Counts requests by application: `accepted + resumed = settled + putOff + givenBack + inHand` at every moment. Pages of
/// broadcasts don't count: a request to an audience is settled when its campaign begins.
package struct RequestLedger: Sendable {
  package enum Entry: Int, CaseIterable, Sendable {
    /// Received from a producer's queue, or replayed from the dead letters.
    case accepted
    /// Received again after it was put off.
    case resumed
    case settled
    /// On the retry ladder, in a hold queue or in the quarantine, confirmed.
    case putOff
    /// Returned to the broker, which delivers it again.
    case givenBack
    case inHand
  }

  private static let width = Entry.allCases.count

  private var amounts: [Int] = []

  mutating func add(_ entry: Entry, _ series: Int, _ amount: Int = 1) {
    amounts.grow(to: (series + 1) * Self.width)
    amounts[series * Self.width + entry.rawValue] += amount
  }

  package func amount(_ entry: Entry, _ series: Int) -> Int { amounts.amount(at: series * Self.width + entry.rawValue) }

  static func += (a: inout RequestLedger, b: RequestLedger) { a.amounts.add(b.amounts) }
}

extension [Int] {
  @inline(__always)
  fileprivate mutating func grow(to size: Int) {
    if count < size { append(contentsOf: repeatElement(0, count: size - count)) }
  }

  fileprivate func amount(at place: Int) -> Int { indices.contains(place) ? self[place] : 0 }

  fileprivate mutating func add(_ others: [Int]) {
    grow(to: others.count)
    for index in others.indices { self[index] += others[index] }
  }
}
