/// Amounts by key; a key whose amount is 0 takes no room.
public struct Tally<Key: Hashable> {
  @usableFromInline var amounts: [Key: Int] = [:]
  @usableFromInline var sum = 0

  public init() {}

  /// Of all keys.
  @inlinable public var total: Int { sum }

  /// Keys whose amount isn't 0.
  @inlinable public var keys: Int { amounts.count }

  @inlinable public subscript(key: Key) -> Int { amounts[key] ?? 0 }

  @inlinable
  public mutating func add(_ amount: Int = 1, to key: Key) {
    sum += amount
    let new = self[key] + amount
    amounts[key] = new == 0 ? nil : new
  }

  @inlinable
  public mutating func remove(_ amount: Int = 1, from key: Key) { add(-amount, to: key) }
}
