/// A first-in, first-out queue whose storage is kept.
struct Ring<Element> {
  private var storage: [Element?]
  private var head = 0
  private(set) var count = 0

  init(capacity: Int = 16) { storage = Array(repeating: nil, count: max(capacity, 1)) }

  var isEmpty: Bool { count == 0 }
  var first: Element? { count == 0 ? nil : storage[head] }

  mutating func append(_ element: Element) {
    if count == storage.count { grow() }
    storage[(head + count) % storage.count] = element
    count += 1
  }

  mutating func prepend(_ element: Element) {
    if count == storage.count { grow() }
    head = (head + storage.count - 1) % storage.count
    storage[head] = element
    count += 1
  }

  mutating func popFirst() -> Element? {
    guard count > 0 else { return nil }
    let element = storage[head]
    storage[head] = nil
    head = (head + 1) % storage.count
    count -= 1
    return element
  }

  mutating func removeAll(where isRemoved: (Element) -> Bool) {
    for _ in 0..<count {
      if let element = popFirst(), !isRemoved(element) { append(element) }
    }
  }

  private mutating func grow() {
    var larger: [Element?] = []
    larger.reserveCapacity(storage.count * 2)
    for offset in 0..<count { larger.append(storage[(head + offset) % storage.count]) }
    larger.append(contentsOf: repeatElement(nil, count: storage.count * 2 - count))
    storage = larger
    head = 0
  }
}
