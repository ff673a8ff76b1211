/// Values that are known by a small number as long as they are there. The number is given again to others afterwards.
public struct Slab<Element> {
  @usableFromInline var storage: [Element?] = []
  @usableFromInline var free: [Int] = []

  @inlinable public init() {}

  @inlinable public var count: Int { storage.count - free.count }

  /// The numbers that are given, ascending. For looking at everything: it takes time by the most that there ever were at once.
  @inlinable public var indices: [Int] { storage.indices.filter { storage[$0] != nil } }

  @inlinable public mutating func insert(_ element: Element) -> Int {
    guard let index = free.popLast() else {
      storage.append(element)
      return storage.count - 1
    }
    storage[index] = element
    return index
  }

  /// nil where nothing is known by the number, which can only be given by ``insert(_:)``.
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
