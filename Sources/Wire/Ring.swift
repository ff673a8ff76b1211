/// A first-in, first-out queue whose storage is kept.
public struct Ring<Element> {
  @usableFromInline var storage: [Element?] = []
  @usableFromInline var head = 0
  @usableFromInline var length = 0

  @inlinable public init() {}

  @inlinable public var count: Int { length }

  @inlinable public var isEmpty: Bool { count == 0 }
  @inlinable public var first: Element? { count == 0 ? nil : storage[head] }

  @inlinable public mutating func append(_ element: Element) {
    if count == storage.count { grow() }
    storage[place(head &+ count)] = element
    length &+= 1
  }

  @inlinable public mutating func prepend(_ element: Element) {
    if count == storage.count { grow() }
    head = place(head &+ storage.count &- 1)
    storage[head] = element
    length &+= 1
  }

  @inlinable public mutating func popFirst() -> Element? {
    guard count > 0 else { return nil }
    let element = storage[head]
    storage[head] = nil
    head = place(head &+ 1)
    length &-= 1
    return element
  }

  @inlinable public mutating func removeAll(where isRemoved: (Element) -> Bool) {
    for _ in 0..<count {
      if let element = popFirst(), !isRemoved(element) { append(element) }
    }
  }

  /// Of what is less than two rounds from the storage's begin.
  @inlinable func place(_ index: Int) -> Int { index < storage.count ? index : index &- storage.count }

  @usableFromInline mutating func grow() {
    let size = max(storage.count * 2, 16)
    var larger: [Element?] = []
    larger.reserveCapacity(size)
    for offset in 0..<count { larger.append(storage[place(head &+ offset)]) }
    larger.append(contentsOf: repeatElement(nil, count: size - count))
    storage = larger
    head = 0
  }
}
