import Wire

/// Collects the content after a `basic.deliver` or `basic.return`: a header frame and the body's frames.
struct ContentAssembly {
  enum State {
    /// A method may come. Next: `header`.
    case none
    /// Next: `body`, or `none` for an empty body.
    case header
    /// Next: `none`.
    case body
    /// Like `header` and `body`, for a delivery to a former consumer. It is discarded.
    case formerHeader, formerBody
  }

  var state = State.none
  var delivery = Delivery()
  private var remaining: UInt64 = 0

  /// - Returns: true if the delivery is complete, nil if the header is malformed.
  mutating func header(_ payload: RawSpan, cache: inout PropertyCache) -> Bool? {
    var cursor = WireCursor(0..<payload.byteCount)
    let contentClass = cursor.uint16(in: payload)
    cursor.skip(2)
    remaining = cursor.uint64(in: payload)
    guard contentClass == Frame.basicClass, delivery.properties.read(&cursor, in: payload, cache: &cache) else { return nil }
    if state == .formerHeader {
      state = remaining == 0 ? .none : .formerBody
      delivery = Delivery()
      return false
    }
    delivery.bodySize = remaining
    if remaining > 0 { state = .body }
    return remaining == 0
  }

  /// - Returns: true if the delivery is complete, nil if the body is unexpected or too long.
  mutating func body(_ payload: RawSpan, keeping maximum: Int) -> Bool? {
    guard state == .body || state == .formerBody, UInt64(payload.byteCount) <= remaining else { return nil }
    remaining -= UInt64(payload.byteCount)
    if state == .formerBody {
      if remaining == 0 { state = .none }
      return false
    }
    let kept = min(payload.byteCount, maximum - delivery.body.count)
    if delivery.body.isEmpty, remaining > 0 {
      delivery.body.reserveCapacity(Int(min(delivery.bodySize, UInt64(maximum), 1 << 20)))
    }
    if delivery.body.capacity == 0 {
      delivery.body = payload.array(0..<kept)
    } else {
      payload.append(0..<kept, to: &delivery.body)
    }
    return remaining == 0
  }

  /// Moves the complete delivery out, without a copy.
  mutating func take() -> Delivery {
    state = .none
    var whole = Delivery()
    swap(&whole, &delivery)
    return whole
  }
}
