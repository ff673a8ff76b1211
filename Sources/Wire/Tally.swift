/// Amounts by key; a key whose amount is 0 takes no room.
public struct Tally<Key: Hashable> {
  @usableFromInline var amounts: [Key: Int] = [:]
  /// Of all keys.
  public private(set) var total = 0

  public init() {}

  /// Keys whose amount isn't 0.
  @inlinable public var keys: Int { amounts.count }

  @inlinable public subscript(key: Key) -> Int { amounts[key] ?? 0 }

  public mutating func add(_ amount: Int = 1, to key: Key) {
    total += amount
    let sum = self[key] + amount
    amounts[key] = sum == 0 ? nil : sum
  }

  public mutating func remove(_ amount: Int = 1, from key: Key) { add(-amount, to: key) }
}
