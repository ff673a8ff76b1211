import DeviceRegistry
import PushCore
import Wire

/// The logins of the console, in the memory of this process. Confined to the loop's thread.
final class ConsoleSessions {
  static let cookie = "pushfleet"
  /// Seconds.
  static let lifetime = 8 * 3_600
  /// The most sessions, and those of one key. The oldest is dropped for another one.
  private static let (most, mostOfKey) = (1_000, 20)

  struct Session {
    var keyID: [UInt8]
    var hash: [UInt8]
    var openedAt: MonotonicTime
  }

  /// By the digest of the session's secret.
  private var sessions: [[UInt8]: Session] = [:]

  /// - Returns: the session's secret: 128 random bits in Base64.
  func open(_ key: GatewayKey, at now: MonotonicTime) -> [UInt8] {
    let own = sessions.filter { $0.value.keyID == key.id }
    let crowd = own.count >= Self.mostOfKey ? own : sessions.count >= Self.most ? sessions : [:]
    if let oldest = crowd.min(by: { $0.value.openedAt < $1.value.openedAt }) {
      sessions[oldest.key] = nil
    }
    var random = SystemRandomNumberGenerator()
    let secret = Base64URL.encode((0..<16).map { _ in UInt8.random(in: .min ... .max, using: &random) })
    sessions[Digest.sha256(secret)] = Session(keyID: key.id, hash: key.hash, openedAt: now)
    return secret
  }

  /// Nil if there is no such session, or if it is too old.
  func find(_ secret: [UInt8], at now: MonotonicTime) -> Session? {
    let name = Digest.sha256(secret)
    guard let session = sessions[name] else { return nil }
    guard now.seconds(since: session.openedAt) < Double(Self.lifetime) else {
      sessions[name] = nil
      return nil
    }
    return session
  }

  func close(_ secret: [UInt8]) { sessions[Digest.sha256(secret)] = nil }
}
