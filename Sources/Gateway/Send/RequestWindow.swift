import Wire

/// Remembers recent requests, so that a repeated one gets the same answer and isn't done twice. Limited in number and bytes.
final class RequestWindow {
  enum State {
    /// Unanswered; the completions belong to repeats that wait for the same answer. → `answered`, `again`, `failed`, removed.
    case waiting([SendService.Completion])
    case answered(SendService.Outcome)
    /// It is unknown whether the broker has the request. A repeat is published under the same id.
    case again
    /// The request reached no device. A repeat is published under another id, because a worker may still know this one.
    case failed(SendService.Outcome)
  }

  struct Entry {
    var app: [UInt8]
    var messageID: [UInt8]
    var body: RequestDigest
    var state: State
    var until: MonotonicTime
  }

  private static let most = 16_384
  private static let mostBytes = 16 << 20

  /// Seconds for which an answered request is remembered.
  let lifetime: Double
  /// The requests of all gateways; nil if each gateway knows only its own.
  let shared: SharedRequests?
  private var entries: [RequestDigest: Entry] = [:]
  /// The requests of our own interface, by message id.
  private var digests: [[UInt8]: RequestDigest] = [:]
  private var order = Ring<(key: RequestDigest, until: MonotonicTime)>()
  private var bytes = 0

  init(lifetime: Double, shared: SharedRequests? = nil) {
    self.lifetime = lifetime
    self.shared = shared
  }

  subscript(key: RequestDigest) -> Entry? { entries[key] }

  /// The state of a message of an application; nil if it isn't known.
  func state(ofMessage messageID: [UInt8], app: [UInt8]) -> State? {
    guard let entry = digests[messageID].flatMap({ entries[$0] }), entry.app == app else { return nil }
    return entry.state
  }

  /// - Parameter isSought: ``state(ofMessage:app:)`` finds it.
  func begin(_ key: RequestDigest, _ messageID: [UInt8], app: [UInt8], body: RequestDigest, isSought: Bool) {
    entries[key] = Entry(app: app, messageID: messageID, body: body, state: .waiting([]), until: .distantFuture)
    if isSought { digests[messageID] = key }
  }

  func join(_ key: RequestDigest, _ then: @escaping SendService.Completion) {
    guard case .waiting(let others)? = entries[key]?.state else { return }
    entries[key]?.state = .waiting(others + [then])
  }

  /// - Returns: the completions of waiting repeats.
  func end(_ key: RequestDigest, _ state: State?, at now: MonotonicTime) -> [SendService.Completion] {
    guard let place = entries.index(forKey: key), case .waiting(let others) = entries.values[place].state else { return [] }
    guard let state else {
      remove(place)
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
      remove(place)
    }
  }

  private func remove(_ place: Dictionary<RequestDigest, Entry>.Index) {
    let entry = entries.remove(at: place).value
    if !digests.isEmpty { digests[entry.messageID] = nil }
  }

  /// Adds the result of a request that was answered as accepted.
  func learn(_ key: RequestDigest, _ result: SendService.Outcome) {
    guard let place = entries.index(forKey: key), case .answered(.accepted) = entries.values[place].state else { return }
    bytes += Self.weight(.answered(result)) - Self.weight(entries.values[place].state)
    entries.values[place].state = .answered(result)
  }

  /// A repeat is published again, so the entry waits for an answer again.
  func resume(_ key: RequestDigest, as messageID: [UInt8]) {
    guard let place = entries.index(forKey: key) else { return }
    bytes -= Self.weight(entries.values[place].state)
    if digests.removeValue(forKey: entries.values[place].messageID) != nil { digests[messageID] = key }
    entries.values[place].messageID = messageID
    entries.values[place].state = .waiting([])
    entries.values[place].until = .distantFuture
  }

  private static func weight(_ state: State) -> Int {
    switch state {
    case .answered(.result(let body)), .failed(.result(let body)): 256 + body.count
    default: 256
    }
  }
}

/// A SHA-256 as a dictionary key, without allocation. Only its first 8 bytes are hashed, because nobody can choose them.
struct RequestDigest: Hashable {
  private var words = SIMD4<UInt64>()

  /// - Parameter digest: at most 32 bytes.
  init(_ digest: [UInt8]) {
    for (index, byte) in digest.enumerated() { words[index / 8] = words[index / 8] << 8 | UInt64(byte) }
  }

  func hash(into hasher: inout Hasher) { hasher.combine(words[0]) }
}
