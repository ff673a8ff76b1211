/// Amounts by key. A key whose amount is 0 is not stored.
public struct Tally<Key: Hashable> {
  @usableFromInline var amounts: [Key: Int] = [:]
  @usableFromInline var sum = 0

  public init() {}

  @inlinable public var total: Int { sum }

  /// The number of keys whose amount isn't 0.
  @inlinable public var keys: Int { amounts.count }

  @inlinable public subscript(key: Key) -> Int { amounts[key] ?? 0 }

  @inlinable public mutating func add(_ amount: Int = 1, to key: Key) {
    sum += amount
    let new = self[key] + amount
    amounts[key] = new == 0 ? nil : new
  }

  @inlinable public mutating func remove(_ amount: Int = 1, from key: Key) { add(-amount, to: key) }
}
