import PushCore

/// That a request waits, or has been delivered, for which older ones in the same place are not sent any more.
public struct CollapseNote: Sendable {
  public let place: CollapsePlace
  public private(set) var order: CollapseOrder
  /// Until when somebody may ask, in unix milliseconds: the longest life of those that wait.
  public private(set) var until: Int64

  public init(place: CollapsePlace, order: CollapseOrder, until: Int64) {
    self.place = place
    self.order = order
    self.until = until
  }

  /// One of two of the same place.
  public mutating func merge(_ other: Self) {
    order = max(order, other.order)
    until = max(until, other.until)
  }
}

extension CollapsePlace {
  /// As the registry keeps it.
  var bytes: [UInt8] { CollapseOrder.bytes(of: [high, low]) }
}

extension CollapseOrder {
  /// As the registry keeps it: a database compares it as bytes.
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

  /// Turned over, so that what is below zero comes first.
  private static let sign: UInt64 = 1 << 63

  fileprivate static func bytes(of words: [UInt64]) -> [UInt8] {
    words.flatMap { word in stride(from: UInt64(56), through: 0, by: -8).map { UInt8(truncatingIfNeeded: word >> $0) } }
  }
}
