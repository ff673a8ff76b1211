/// Values identified by small numbers. The number of a removed value is reused.
public struct Slab<Element> {
  @usableFromInline var storage: [Element?] = []
  @usableFromInline var free: [Int] = []

  @inlinable public init() {}

  @inlinable public var count: Int { storage.count - free.count }

  /// The numbers in use, ascending. Takes time proportional to the largest number of values so far.
  @inlinable public var indices: [Int] { storage.indices.filter { storage[$0] != nil } }

  @inlinable public mutating func insert(_ element: Element) -> Int {
    guard let index = free.popLast() else {
      storage.append(element)
      return storage.count - 1
    }
    storage[index] = element
    return index
  }

  /// Nil if the number isn't in use. Setting can't add a value; use ``insert(_:)``.
  @inlinable public subscript(index: Int) -> Element? {
    get { index >= 0 && index < storage.count ? storage[index] : nil }
    set {
      guard let newValue else { return _ = remove(index) }
      if self[index] != nil { storage[index] = newValue }
    }
  }

  @discardableResult
  @inlinable public mutating func remove(_ index: Int) -> Element? {
    guard let element = self[index] else { return nil }
    storage[index] = nil
    free.append(index)
    return element
  }
}
