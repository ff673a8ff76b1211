import DeviceRegistry
import PushCore
import Reactor
import Wire

/// Checks keys against the registry and remembers them for a few seconds. Confined to the loop's thread.
final class KeyCache {
  typealias Verdict = (Result<GatewayKey, Fault>) -> Void
  /// Returns true if the caller has proved that the key is theirs.
  typealias Proof = (GatewayKey) -> Bool

  /// Seconds for which a key is cached, and for which it is cached while the registry can't be read: sends need no registry
  /// otherwise.
  private static let (fresh, stale) = (5.0, 900.0)
  /// Seconds between two updates of a key's last use.
  private static let notePause = 60.0
  private static let most = 4_096

  private struct Entry {
    var key: GatewayKey
    var readAt: MonotonicTime
    var notedAt: MonotonicTime?
    var bucket: TokenBucket

    mutating func admits(at now: MonotonicTime) -> Bool {
      key.rate.map { bucket.admits(rate: Double($0), burst: Double($0), at: now) } ?? true
    }
  }

  private let loop: EventLoop
  private let registry: RegistryClient
  private var entries: [[UInt8]: Entry] = [:]
  private var lookUps: [[UInt8]: [(proof: Proof, then: Verdict)]] = [:]

  init(_ registry: RegistryClient, loop: EventLoop) {
    self.registry = registry
    self.loop = loop
  }

  /// - Parameters:
  ///   - text: a key, or an access token of the token endpoint; nil if the caller gives none.
  ///   - then: called once; during this call if the key is cached.
  func admit(_ text: [UInt8]?, then: @escaping Verdict) {
    guard let text else { return then(.failure(.noKey)) }
    if let id = NewSecret.id(in: text, .key) {
      admit(id, by: { Digest.areEqual(Digest.sha256(text), $0.hash) }, then: then)
    } else if let token = AccessToken(text) {
      admit(token.keyID, by: { [loop] in token.isGood(for: $0, at: loop.wallClock / 1_000) }, then: then)
    } else {
      then(.failure(.wrongKey))
    }
  }

  func admit(_ id: [UInt8], by proof: @escaping Proof, then: @escaping Verdict) {
    if let place = entries.index(forKey: id), loop.now.seconds(since: entries.values[place].readAt) < Self.fresh {
      return then(judge(proof, id, place))
    }
    lookUps[id, default: []].append((proof, then))
    if lookUps[id]?.count == 1 { read(id) }
  }

  /// Counts further requests of an admitted call. A key beyond its rate then waits until they are within it.
  func charge(_ key: GatewayKey, requests: Int) { entries[key.id]?.bucket.tokens -= Double(requests) }

  private func read(_ id: [UInt8]) {
    registry.call(.read { try $0.key(id) }) { [weak self] result in
      guard let self else { return }
      let waiting = lookUps.removeValue(forKey: id) ?? []
      switch result {
      case .success(let key?): remember(key)
      case .success(nil): entries[id] = nil
      case .failure:
        let isBelieved = entries[id].map { loop.now.seconds(since: $0.readAt) < Self.stale } ?? false
        guard isBelieved else {
          for (_, then) in waiting { then(.failure(.unavailable("the keys can't be read for now"))) }
          return
        }
      }
      for (proof, then) in waiting { then(judge(proof, id, entries.index(forKey: id))) }
    }
  }

  private func remember(_ key: GatewayKey) {
    if entries.count >= Self.most { entries.removeAll() }
    let full = TokenBucket(tokens: Double(key.rate ?? 0), filledAt: loop.now)
    let former = entries[key.id]
    entries[key.id] = Entry(key: key, readAt: loop.now, notedAt: former?.notedAt, bucket: former?.bucket ?? full)
  }

  private func judge(_ proof: Proof, _ id: [UInt8], _ place: [[UInt8]: Entry].Index?) -> Result<GatewayKey, Fault> {
    guard let place, case let key = entries.values[place].key, proof(key), key.revokedAt == nil else {
      return .failure(.wrongKey)
    }
    if entries.values[place].notedAt.map({ loop.now.seconds(since: $0) >= Self.notePause }) ?? true {
      entries.values[place].notedAt = loop.now
      registry.note(.write(.devices) { try $0.keyUsed(id, now: $1) })
    }
    return entries.values[place].admits(at: loop.now) ? .success(key) : .failure(.tooMany)
  }
}
