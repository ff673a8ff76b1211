/// A queue of values: in at the end, out at the front.
struct FIFO<Element>: Sequence {
  private var items: [Element?] = []
  private var head = 0

  var count: Int { items.count - head }
  var isEmpty: Bool { count == 0 }
  var first: Element? { isEmpty ? nil : items[head] }

  mutating func append(_ element: Element) { items.append(element) }

  mutating func popFirst() -> Element? {
    guard !isEmpty else { return nil }
    defer {
      items[head] = nil
      head += 1
      if head > 64, head > items.count / 2 {
        items.removeFirst(head)
        head = 0
      }
    }
    return items[head]
  }

  /// In front of the first element that belongs behind it, or at the end.
  mutating func insert(_ element: Element, before isLater: (Element) -> Bool) {
    let index = items[head...].firstIndex { $0.map(isLater) ?? false } ?? items.count
    items.insert(element, at: index)
  }

  mutating func remove(where isRemoved: (Element) -> Bool) -> [Element] {
    let all = Array(self)
    items = all.filter { !isRemoved($0) }
    head = 0
    return all.filter(isRemoved)
  }

  func makeIterator() -> some IteratorProtocol<Element> { items[head...].lazy.compactMap(\.self).makeIterator() }
}
