/// Placeholders for the values of each device: control bytes, which JSON text never contains unescaped.
enum Placeholder {
  static let badge: UInt8 = 1
  static let pushKey: UInt8 = 2
  /// The most bytes of a filled placeholder.
  static let badgeDigits = 10
  static let pushKeyDigits = 40

  /// The first placeholder at or after `start`. Checks eight bytes at a time, because most bodies have at most one.
  private static func next(in body: borrowing Span<UInt8>, from start: Int) -> Int? {
    var place = start
    while place + 8 <= body.count {
      let word = Bytes.word(body, at: place)
      if (word &- 0x0303_0303_0303_0303) & ~word & 0x8080_8080_8080_8080 != 0 { break }
      place += 8
    }
    while place < body.count {
      if body[place] == badge || body[place] == pushKey { return place }
      place += 1
    }
    return nil
  }

  /// The place of the first placeholder; nil if there is none.
  static func first(in body: [UInt8]) -> Int? { next(in: body.span, from: 0) }

  /// Bytes of the body with all placeholders filled to their largest size.
  static func count(_ body: ArraySlice<UInt8>) -> Int {
    let body = body.span
    var count = body.count
    var start = 0
    while let place = next(in: body, from: start) {
      count += (body[place] == badge ? badgeDigits : pushKeyDigits) - 1
      start = place + 1
    }
    return count
  }

  /// - Parameters:
  ///   - first: the place of the body's first placeholder.
  ///   - counter: the device's badge; nil if it has none, and the member is left out.
  ///   - message: the message's key.
  static func filled(
    _ body: [UInt8], from first: Int?, _ counter: Int64?, message: Int64 = 0, token: ArraySlice<UInt8> = []
  ) -> [UInt8] {
    guard var place = first else { return body }
    var filled: [UInt8] = []
    filled.reserveCapacity(body.count + badgeDigits + pushKeyDigits)
    var start = 0
    while true {
      filled.append(contentsOf: body[start..<place])
      start = place + 1
      if body[place] == pushKey {
        MessageKey.appendPushKey(of: message, token: token.span, to: &filled)
      } else if let counter {
        filled.appendDecimal(counter)
      } else {
        filled.removeLastName()
        if filled.last == 0x7B, start < body.count, body[start] == 0x2C { start += 1 }
      }
      guard let following = next(in: body.span, from: start) else { break }
      place = following
    }
    filled.append(contentsOf: body[start...])
    return filled
  }
}

extension [UInt8] {
  /// Removes the name of a member without a value, and the comma before it.
  fileprivate mutating func removeLastName() {
    guard let start = dropLast(2).lastIndex(of: 0x22) else { return }
    removeSubrange(start...)
    if last == 0x2C { removeLast() }
  }
}
