/// A first-in, first-out queue that keeps its storage.
public struct Ring<Element>: Sequence {
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

  /// Inserts before the first element that `isLater` accepts, or at the end.
  public mutating func insert(_ element: Element, before isLater: (Element) -> Bool) {
    var isIn = false
    for _ in 0..<count {
      guard let other = popFirst() else { return }
      if !isIn, isLater(other) {
        append(element)
        isIn = true
      }
      append(other)
    }
    if !isIn { append(element) }
  }

  @inlinable public var last: Element? { count == 0 ? nil : storage[place(head &+ count &- 1)] }

  @inlinable public func makeIterator() -> Iterator { Iterator(ring: self) }

  public struct Iterator: IteratorProtocol {
    @usableFromInline let ring: Ring
    @usableFromInline var offset = 0

    @usableFromInline init(ring: Ring) { self.ring = ring }

    @inlinable public mutating func next() -> Element? {
      guard offset < ring.count else { return nil }
      defer { offset &+= 1 }
      return ring.storage[ring.place(ring.head &+ offset)]
    }
  }

  /// - Parameter index: less than twice the size of the storage.
  @inlinable func place(_ index: Int) -> Int { index < storage.count ? index : index &- storage.count }

  @usableFromInline mutating func grow() {
    let size = Swift.max(storage.count * 2, 16)
    var larger: [Element?] = []
    larger.reserveCapacity(size)
    for offset in 0..<count { larger.append(storage[place(head &+ offset)]) }
    larger.append(contentsOf: repeatElement(nil, count: size - count))
    storage = larger
    head = 0
  }
}
