import Wire

/// Remembers requests for a while, so that one that comes again is answered as it was, and not done twice. Bounded in number and bytes.
final class RequestWindow {
  enum State {
    /// Whoever else has sent it waits for the same answer. Then `answered`, `again`, `failed` or nothing.
    case waiting([SendDesk.Completion])
    case answered(SendDesk.Outcome)
    /// It is not known whether it was taken: to be published again under the same id.
    case again
    /// It has reached nobody: to be published again under another id, as a worker may still know this one.
    case failed
  }

  struct Entry {
    var messageID: [UInt8]
    var body: RequestDigest
    var state: State
    var until: MonotonicTime
  }

  private static let most = 16_384
  private static let mostBytes = 16 << 20

  /// Seconds.
  let lifetime: Double
  /// What all gateways know; nil where each knows only its own.
  let shared: SharedRequests?
  private var entries: [RequestDigest: Entry] = [:]
  private var order = Ring<(key: RequestDigest, until: MonotonicTime)>()
  private var bytes = 0

  init(lifetime: Double, shared: SharedRequests? = nil) {
    self.lifetime = lifetime
    self.shared = shared
  }

  subscript(key: RequestDigest) -> Entry? { entries[key] }

  func begin(_ key: RequestDigest, _ messageID: [UInt8], body: RequestDigest) {
    entries[key] = Entry(messageID: messageID, body: body, state: .waiting([]), until: .distantFuture)
  }

  func join(_ key: RequestDigest, _ then: @escaping SendDesk.Completion) {
    guard case .waiting(let others)? = entries[key]?.state else { return }
    entries[key]?.state = .waiting(others + [then])
  }

  /// - Returns: who has waited for it.
  func end(_ key: RequestDigest, _ state: State?, at now: MonotonicTime) -> [SendDesk.Completion] {
    guard let place = entries.index(forKey: key), case .waiting(let others) = entries.values[place].state else { return [] }
    guard let state else {
      entries.remove(at: place)
      return others
    }
    let until = now.advanced(bySeconds: lifetime)
    entries.values[place].state = state
    entries.values[place].until = until
    order.append((key, until))
    bytes += Self.weight(state)
    sweep(at: now)
    return others
  }

  func sweep(at now: MonotonicTime) {
    while let first = order.first, first.until <= now || order.count > Self.most || bytes > Self.mostBytes {
      _ = order.popFirst()
      guard let place = entries.index(forKey: first.key), entries.values[place].until == first.until else { continue }
      bytes -= Self.weight(entries.values[place].state)
      entries.remove(at: place)
    }
  }

  /// An entry that is published again is waited for again.
  func resume(_ key: RequestDigest, as messageID: [UInt8]) {
    guard let place = entries.index(forKey: key) else { return }
    bytes -= Self.weight(entries.values[place].state)
    entries.values[place].messageID = messageID
    entries.values[place].state = .waiting([])
    entries.values[place].until = .distantFuture
  }

  private static func weight(_ state: State) -> Int {
    if case .answered(.result(let body)) = state { 256 + body.count } else { 256 }
  }
}

/// A SHA-256 as a key: no allocation, and hashed by a part of it, as nobody can choose that.
struct RequestDigest: Hashable {
  private let (first, second, third, fourth): (UInt64, UInt64, UInt64, UInt64)

  /// - Parameter digest: 32 bytes; missing ones are 0.
  init(_ digest: [UInt8]) {
    func word(_ start: Int) -> UInt64 {
      var word: UInt64 = 0
      for index in start..<min(start + 8, digest.count) { word = word << 8 | UInt64(digest[index]) }
      return word
    }
    (first, second) = (word(0), word(min(8, digest.count)))
    (third, fourth) = (word(min(16, digest.count)), word(min(24, digest.count)))
  }

  func hash(into hasher: inout Hasher) { hasher.combine(first) }
}
