import PushCore

/// Records that a request waits or was delivered. Older requests in the same place are then not sent.
public struct CollapseNote: Sendable {
  public let place: CollapsePlace
  public private(set) var order: CollapseOrder
  /// When the record expires, in Unix milliseconds: the longest lifetime of the waiting requests.
  public private(set) var until: Int64

  public init(place: CollapsePlace, order: CollapseOrder, until: Int64) {
    self.place = place
    self.order = order
    self.until = until
  }

  public mutating func merge(_ other: Self) {
    order = max(order, other.order)
    until = max(until, other.until)
  }
}

extension CollapsePlace {
  /// The registry's format.
  var bytes: [UInt8] { CollapseOrder.bytes(of: [high, low]) }
}

extension CollapseOrder {
  /// The registry's format. Databases compare it as bytes.
  var bytes: [UInt8] {
    Self.bytes(of: [published, arrived, message].map { UInt64(bitPattern: $0) ^ Self.sign })
  }

  init?(_ bytes: [UInt8]) {
    guard bytes.count == 24 else { return nil }
    let words = [0, 8, 16].map { start in
      Int64(bitPattern: bytes[start..<start + 8].reduce(UInt64(0)) { $0 << 8 | UInt64($1) } ^ Self.sign)
    }
    self.init(published: words[0], arrived: words[1], message: words[2])
  }

  /// The sign bit is inverted, so that negative numbers sort first.
  private static let sign: UInt64 = 1 << 63

  fileprivate static func bytes(of words: [UInt64]) -> [UInt8] {
    words.flatMap { word in stride(from: UInt64(56), through: 0, by: -8).map { UInt8(truncatingIfNeeded: word >> $0) } }
  }
}
