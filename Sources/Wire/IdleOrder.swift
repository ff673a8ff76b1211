/// Open connections, the idle ones ordered by last activity: the oldest is closed if room is needed. Every operation is O(1).
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

  @inlinable public var count: Int { places.count }

  /// The id of the connection that has been idle longest; nil if all are busy.
  @inlinable public var oldest: Int? { ends.oldest >= 0 ? ends.oldest : nil }

  /// - Returns: the id of the connection until it is closed. The connection is idle.
  @inlinable public mutating func open(_ element: Element) -> Int {
    let id = places.insert(Place(element))
    idle(id)
    return id
  }

  /// Marks a connection as active just now, and idle.
  @inlinable public mutating func idle(_ id: Int) {
    leave(id)
    places[id]?.isIdle = true
    places[id]?.older = ends.newest
    if ends.newest >= 0 { places[ends.newest]?.newer = id } else { ends.oldest = id }
    ends.newest = id
  }

  /// Marks a connection as busy, so that `takeOldest` skips it.
  @inlinable public mutating func busy(_ id: Int) { leave(id) }

  @inlinable public mutating func close(_ id: Int) {
    leave(id)
    places.remove(id)
  }

  /// Removes the connection that has been idle longest from the order; nil if all are busy.
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
