/// Open connections of which those that wait for nothing stand in the order in which they were last heard of: where room is needed, the first
/// of them goes. Every step takes the same short time, however many there are.
public struct IdleOrder<Element> {
  @usableFromInline struct Place {
    @usableFromInline let element: Element
    @usableFromInline var older = -1
    @usableFromInline var newer = -1
    @usableFromInline var isIdle = false

    @inlinable init(_ element: Element) { self.element = element }
  }

  @usableFromInline var places = Slab<Place>()
  @usableFromInline var ends = (oldest: -1, newest: -1)

  @inlinable public init() {}

  /// How many are open.
  @inlinable public var count: Int { places.count }

  /// What the one is known by that was silent for longest; nil where all are busy.
  @inlinable public var oldest: Int? { ends.oldest >= 0 ? ends.oldest : nil }

  /// - Returns: what it is known by until it is closed; it stands last in the order.
  @inlinable public mutating func open(_ element: Element) -> Int {
    let id = places.insert(Place(element))
    idle(id)
    return id
  }

  /// It was heard of, and waits for nothing: it stands last in the order now.
  @inlinable public mutating func idle(_ id: Int) {
    leave(id)
    places[id]?.isIdle = true
    places[id]?.older = ends.newest
    if ends.newest >= 0 { places[ends.newest]?.newer = id } else { ends.oldest = id }
    ends.newest = id
  }

  /// Something is under way: it may not be asked to go.
  @inlinable public mutating func busy(_ id: Int) { leave(id) }

  @inlinable public mutating func close(_ id: Int) {
    leave(id)
    places.remove(id)
  }

  /// Takes the one out of the order that was silent for longest; nil where all are busy.
  @inlinable public mutating func takeOldest() -> Element? {
    guard ends.oldest >= 0 else { return nil }
    let id = ends.oldest
    leave(id)
    return places[id]?.element
  }

  @inlinable mutating func leave(_ id: Int) {
    guard let place = places[id], place.isIdle else { return }
    if place.older >= 0 { places[place.older]?.newer = place.newer } else { ends.oldest = place.newer }
    if place.newer >= 0 { places[place.newer]?.older = place.older } else { ends.newest = place.older }
    places[id] = Place(place.element)
  }
}
