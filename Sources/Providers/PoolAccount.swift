import PushCore
import Wire

/// The part of a pool that belongs to one application or one of its senders: its pushes, and whether the provider accepts its
/// topic. Accounts share the pool's connections, authorisation and health.
public struct PoolAccount {
  final class Record {
    let name: String
    /// Set if the provider refuses the application's topic.
    var stop: PoolHealth.Stop?
    var canary: ProviderProbe?
    /// The application's own topic, for probes.
    var topic: [UInt8] = []
    /// True if the provider has accepted the current credential for the account, by a push or a probe.
    var hasBeenTaken = false
    /// True if a caller found no capacity because the topic was refused.
    var isStarved = false
    /// By reason: a provider may invent any number.
    var alarms = Throttle<String>(seconds: 300, most: 50)

    init(name: String) { self.name = name }
  }

  public let pool: ProviderPool
  /// Unique among the pool's open accounts.
  public let number: Int

  private var stop: PoolHealth.Stop? { pool.accounts[number]?.stop }

  public var name: String { pool.accounts[number]?.name ?? "unknown" }
  /// Pushes without a result.
  public var inFlight: Int { pool.slots.count(of: number).all }
  /// Pushes that may still be answered. Excludes pushes sent before a silence of the provider that has ended.
  public var expected: Int { pool.slots.count(of: number).expected }

  public var capacity: Int {
    guard stop != nil else { return pool.capacity }
    pool.accounts[number]?.isStarved = true
    return 0
  }

  /// Announces waiting pushes. `capacityAvailable` follows when they can be sent.
  public func wantsCapacity() {
    guard stop != nil else { return pool.wantsCapacity() }
    pool.accounts[number]?.isStarved = true
    pool.askForTopic(of: number)
  }

  /// True if one push may be sent as a probe; others follow when it is answered.
  public var takesProbe: Bool { stop == nil && pool.takesProbe }

  public var state: PoolState { stop.map { .stopped(reason: $0.reason) } ?? pool.state }
  /// True if something failed and nothing succeeded since, or if the provider is silent.
  public func isInTrouble(at now: MonotonicTime) -> Bool { stop?.isCertain == true || pool.isInTrouble(at: now) }
  /// True if the provider refuses the account's pushes, or the token endpoint gives no token.
  public var isCredentialRefused: Bool { stop != nil || pool.isCredentialRefused }
  /// The error code for a push that can't wait.
  public var refusalCode: PushError { stop?.code ?? pool.refusalCode }
}

extension ProviderPool {
  /// - Parameter name: for logs and metrics.
  public func openAccount(_ name: String) -> PoolAccount {
    let number = closedAccounts.last.map { slots.count(of: $0).all } == 0 ? closedAccounts.removeLast() : accounts.count
    if number == accounts.count { accounts.append(nil) }
    accounts[number] = PoolAccount.Record(name: name)
    slots.openAccount(number)
    return PoolAccount(pool: self, number: number)
  }

  public func close(_ account: PoolAccount) {
    refusedTopics.removeAll { $0 == account.number }
    accounts[account.number] = nil
    closedAccounts.append(account.number)
  }

  public var openAccounts: Int { accounts.count - closedAccounts.count }

  /// The name of the oldest account, for logs.
  public var name: String { accounts.lazy.compactMap(\.self).first?.name ?? "unknown" }
}
