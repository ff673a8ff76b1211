import PushCore
import Wire

/// The part of a pool that one application, or one of its senders, has: its pushes there, and whether the provider takes its topic. The accounts of a
/// pool share its connections, its authorisation and its health.
public struct PoolAccount {
  /// The pool's record of it.
  final class Record {
    let name: String
    /// The provider refuses the application's topic.
    var stop: PoolHealth.Stop?
    /// Asks whether the provider takes the topic again.
    var canary: Canary?
    /// The topic that the canary asks for: the application's own.
    var topic: [UInt8] = []
    /// The provider has taken a push of it with the present credential, or its own topic was asked for.
    var hasBeenTaken = false
    /// A caller found no capacity while its topic was refused.
    var isStarved = false
    var alarms = AlarmGate()

    init(name: String) { self.name = name }
  }

  public let pool: ProviderPool
  /// Unique among the pool's open accounts.
  public let number: Int

  private var stop: PoolHealth.Stop? { pool.accounts[number]?.stop }

  /// For logs and figures.
  public var name: String { pool.accounts[number]?.name ?? "unknown" }
  /// Pushes handed over and not yet reported back.
  public var inFlight: Int { pool.slots.count(of: number).all }
  /// Those among them that may still be answered: without what a provider was sent before a silence that has ended.
  public var expected: Int { pool.slots.count(of: number).expected }

  /// How many pushes may be handed over right now.
  public var capacity: Int {
    guard stop != nil else { return pool.capacity }
    pool.accounts[number]?.isStarved = true
    return 0
  }

  /// Something is waiting; `capacityAvailable` follows when it can go.
  public func wantsCapacity() {
    guard stop != nil else { return pool.wantsCapacity() }
    pool.accounts[number]?.isStarved = true
    pool.askForTopic(of: number)
  }

  /// One push may go out, and when that is answered, others.
  public var takesProbe: Bool { stop == nil && pool.takesProbe }

  public var state: PoolState { stop.map { .stopped(reason: $0.reason) } ?? pool.state }
  /// The provider serves nothing: something has failed and nothing was served since, or it is silent.
  public func isInTrouble(at now: MonotonicTime) -> Bool { stop?.isCertain == true || pool.isInTrouble(at: now) }
  /// The provider takes no push of it, or the token endpoint gives no token.
  public var isCredentialRefused: Bool { stop != nil || pool.isCredentialRefused }
  /// What a push ends with that can't wait.
  public var refusalCode: PushError { stop?.code ?? pool.refusalCode }
}

extension ProviderPool {
  /// - Parameter name: for logs and figures.
  public func openAccount(_ name: String) -> PoolAccount {
    let number = closedAccounts.last.map { slots.count(of: $0).all } == 0 ? closedAccounts.removeLast() : accounts.count
    if number == accounts.count { accounts.append(nil) }
    accounts[number] = PoolAccount.Record(name: name)
    slots.openAccount(number)
    return PoolAccount(pool: self, number: number)
  }

  /// The account sends nothing more.
  public func close(_ account: PoolAccount) {
    refusedTopics.removeAll { $0 == account.number }
    accounts[account.number] = nil
    closedAccounts.append(account.number)
  }

  public var openAccounts: Int { accounts.count - closedAccounts.count }

  /// Of its oldest account, for logs.
  public var name: String { accounts.lazy.compactMap(\.self).first?.name ?? "unknown" }
}
