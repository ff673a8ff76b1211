import Wire

struct StreamSlot {
  /// 0 while the slot is free.
  var streamID: Int32 = 0
  /// Neighbours in order of submission, which is also the order of deadlines. In a free slot, `next` is the next free slot.
  var previous: Int32 = -1
  var next: Int32 = -1
  var tag = 0
  /// `distantFuture` until the session next learns the time.
  var deadline = MonotonicTime.distantFuture
  var template: HeaderTemplate?
  /// Empty once it is completely framed.
  var body: [UInt8] = []
  var bodySent = 0
  /// Bytes that the server's updates added to the stream's window, less the bytes sent (RFC 9113 §6.9).
  var windowCredit = 0
  /// Bytes of DATA received since the last update of our window.
  var unacknowledged = 0
  /// True after the HEADERS frame was passed to the transport.
  var isSent = false
  /// True after all final headers of the response arrived.
  var isHeaded = false
  /// True if the response is complete, or no more of it is awaited.
  var isAnswered = false
  var response = Response()

  /// True if the status says without the body what became of the request. The body of another status has the reason.
  var isAccepted: Bool { isHeaded && (200..<300).contains(response.status) }

  fileprivate mutating func open(
    _ streamID: Int32, tag: Int, body: consuming [UInt8], template: consuming HeaderTemplate, after previous: Int32
  ) {
    self.streamID = streamID
    self.tag = tag
    self.body = consume body
    self.template = consume template
    self.previous = previous
    next = -1
  }

  /// Empties the slot, except for the tag. Field by field, because moving the whole slot is slow.
  fileprivate mutating func takeAnswer() -> Response {
    var response = Response()
    swap(&response, &self.response)
    streamID = 0
    template = nil
    if !body.isEmpty { body = [] }
    bodySent = 0
    windowCredit = 0
    unacknowledged = 0
    deadline = .distantFuture
    isSent = false
    isHeaded = false
    isAnswered = false
    return response
  }

  /// Returns the number of bytes.
  fileprivate mutating func takeBody(atMost limit: Int, to output: inout [UInt8]) -> Int {
    guard bodySent < body.count else { return 0 }
    let part = bodySent..<min(bodySent + limit, body.count)
    output.append(copying: body.span.extracting(part))
    bodySent = part.upperBound
    if bodySent == body.count { body = [] }
    return part.count
  }
}

/// The open streams of a session: slots with a free list, linked in order of submission. All requests have the same timeout, so
/// the first one in the list times out first.
struct StreamTable {
  private(set) var slots: [StreamSlot] = []
  /// Header values of each slot's request until it is framed. The storage stays with the slot.
  private var values: [HeaderValues] = []
  private(set) var count = 0
  /// Streams whose HEADERS frame was passed to the transport.
  private(set) var sentCount = 0
  private(set) var unsentBytes = 0
  private(set) var first: Int32 = -1
  private var last: Int32 = -1
  private var firstFree: Int32 = -1
  /// First slot in the list without a deadline. All later slots have none either.
  private var firstUnstamped: Int32 = -1
  /// First slot in the list whose request was not framed yet. All later slots' requests were not either.
  private(set) var firstUnsent: Int32 = -1
  private var index = StreamIndex()

  subscript(index: Int32) -> StreamSlot {
    @inline(__always) _read { yield slots[Int(index)] }
    @inline(__always) _modify { yield &slots[Int(index)] }
  }

  /// True if the slot still belongs to this stream and its response is complete.
  @inline(__always)
  func isAnswered(_ index: Int32, _ streamID: Int32) -> Bool {
    slots[Int(index)].streamID == streamID && slots[Int(index)].isAnswered
  }

  /// The slot of an open stream; -1 if the stream is unknown or closed.
  @inline(__always)
  func slot(of streamID: Int32) -> Int32 { index.slot(of: streamID) }

  /// Ignores what still arrives for the stream, whose slot remains until its end is reported.
  mutating func close(_ index: Int32) { self.index.remove(slots[Int(index)].streamID) }

  /// Takes a response as it is. The event reports it.
  mutating func complete(_ index: Int32, _ code: ErrorCode) -> ClientEvent {
    slots[Int(index)].isAnswered = true
    return .streamClosed(slot: index, streamID: slots[Int(index)].streamID, code: code)
  }

  /// Whether any stream has a larger window credit.
  func hasCredit(above most: Int) -> Bool { slots.indices.contains { slots[$0].windowCredit > most } }

  /// Slots in order of submission, which is the order of their ids.
  func slots(where matches: (borrowing StreamSlot) -> Bool) -> [Int32] {
    var found: [Int32] = []
    var index = first
    while index >= 0 {
      if matches(slots[Int(index)]) { found.append(index) }
      index = slots[Int(index)].next
    }
    return found
  }

  /// Adds a slot at the end. `values` becomes empty, with used storage.
  mutating func add(
    _ streamID: Int32, tag: Int, body: consuming [UInt8], template: consuming HeaderTemplate, _ values: inout HeaderValues
  ) {
    let index: Int32
    if firstFree >= 0 {
      index = firstFree
      firstFree = slots[Int(index)].next
    } else {
      index = Int32(slots.count)
      slots.append(StreamSlot())
      self.values.append(HeaderValues())
    }
    swap(&values, &self.values[Int(index)])
    values.removeAll()
    unsentBytes += body.count
    slots[Int(index)].open(streamID, tag: tag, body: consume body, template: consume template, after: last)
    if last >= 0 { slots[Int(last)].next = index } else { first = index }
    last = index
    if firstUnstamped < 0 { firstUnstamped = index }
    if firstUnsent < 0 { firstUnsent = index }
    count += 1
    self.index.insert(streamID, at: index)
  }

  /// Records that the HEADERS frame of the first unsent request was passed to the transport.
  mutating func markFirstSent() {
    slots[Int(firstUnsent)].isSent = true
    sentCount += 1
    firstUnsent = slots[Int(firstUnsent)].next
  }

  /// Appends the next bytes of a request's body. Releases the body with the last ones.
  mutating func takeBody(_ index: Int32, atMost limit: Int, to output: inout [UInt8]) {
    unsentBytes -= slots[Int(index)].takeBody(atMost: limit, to: &output)
  }

  /// Gives access to a slot's header values without a copy.
  @inline(__always)
  mutating func withValues(of index: Int32, _ body: (inout HeaderValues) -> Void) { body(&values[Int(index)]) }

  mutating func remove(_ index: Int32) -> StreamSlot {
    unlink(index)
    var slot = StreamSlot()
    swap(&slot, &slots[Int(index)])
    free(index)
    return slot
  }

  /// Frees the slot of an answered stream.
  mutating func takeAnswer(_ index: Int32) -> (tag: Int, response: Response) {
    unlink(index)
    let response = slots[Int(index)].takeAnswer()
    free(index)
    return (slots[Int(index)].tag, response)
  }

  private mutating func unlink(_ index: Int32) {
    let (previous, next) = (slots[Int(index)].previous, slots[Int(index)].next)
    if previous >= 0 { slots[Int(previous)].next = next } else { first = next }
    if next >= 0 { slots[Int(next)].previous = previous } else { last = previous }
    if firstUnstamped == index { firstUnstamped = next }
    if firstUnsent == index { firstUnsent = next }
    if slots[Int(index)].isSent { sentCount -= 1 }
    self.index.remove(slots[Int(index)].streamID)
    if !slots[Int(index)].body.isEmpty { unsentBytes -= slots[Int(index)].body.count - slots[Int(index)].bodySent }
  }

  private mutating func free(_ index: Int32) {
    slots[Int(index)].next = firstFree
    firstFree = index
    count -= 1
  }

  mutating func stamp(_ deadline: MonotonicTime) {
    while firstUnstamped >= 0 {
      slots[Int(firstUnstamped)].deadline = deadline
      firstUnstamped = slots[Int(firstUnstamped)].next
    }
  }
}

/// Finds the slots of streams: open addressing with linear probing.
private struct StreamIndex {
  private struct Entry {
    /// 0 in a free place.
    var streamID: Int32 = 0
    var slot: Int32 = -1
  }

  /// The size is a power of two.
  private var entries = [Entry](repeating: Entry(), count: 16)
  private var count = 0

  /// The preferred place of an id. Consecutive ids must not be neighbours: a removal looks at all entries up to a free place.
  @inline(__always)
  private func place(of streamID: Int32) -> Int {
    Int((UInt32(bitPattern: streamID) &* 0x9E37_79B1) &>> 12) & (entries.count - 1)
  }

  @inline(__always)
  private func next(_ place: Int) -> Int { (place + 1) & (entries.count - 1) }

  /// The place of the id, or the free place for it. At least half of the places are free.
  @inline(__always)
  private func find(_ streamID: Int32) -> Int {
    var place = place(of: streamID)
    while entries[place].streamID != streamID, entries[place].streamID != 0 { place = next(place) }
    return place
  }

  @inline(__always)
  func slot(of streamID: Int32) -> Int32 { streamID == 0 ? -1 : entries[find(streamID)].slot }

  mutating func insert(_ streamID: Int32, at slot: Int32) {
    count += 1
    if 2 * count > entries.count {
      let old = entries
      entries = Array(repeating: Entry(), count: 2 * old.count)
      for entry in old where entry.streamID != 0 { entries[find(entry.streamID)] = entry }
    }
    entries[find(streamID)] = Entry(streamID: streamID, slot: slot)
  }

  /// Moves later entries to the free place if a search for them would stop there.
  mutating func remove(_ streamID: Int32) {
    var free = find(streamID)
    guard entries[free].streamID != 0 else { return }
    count -= 1
    var place = next(free)
    while entries[place].streamID != 0 {
      let distance = (place - self.place(of: entries[place].streamID)) & (entries.count - 1)
      if distance >= (place - free) & (entries.count - 1) {
        entries[free] = entries[place]
        free = place
      }
      place = next(place)
    }
    entries[free] = Entry()
  }
}
