import Providers
import PushCore

/// The caller of a pool in tests: hands over what it has as capacity allows, and keeps what comes back.
class Sender: PoolHandler, PoolObserver {
  private(set) var answers: [Int: ReplyMeaning] = [:]
  private(set) var names: [Int: [UInt8]] = [:]
  private(set) var notSent: [(tag: Int, why: NotSentReason)] = []
  private(set) var unknown: [(tag: Int, reason: String)] = []
  private(set) var events: [PoolEvent] = []
  /// Tags not handed over yet.
  private(set) var waiting: [Int] = []
  /// Tags that came back unsent wait again.
  var sendsAgain = false
  /// Tags that have expired.
  var expired: Set<Int> = []

  let pool: ProviderPool
  let account: PoolAccount

  init(_ pool: ProviderPool) {
    self.pool = pool
    account = pool.openAccount("test")
    pool.handler = self
    pool.observer = self
  }

  func offer(_ tags: some Sequence<Int>) {
    waiting += tags
    pump()
  }

  func pump() {
    while !waiting.isEmpty, account.capacity > 0 { hand(waiting.removeFirst()) }
    if !waiting.isEmpty { account.wantsCapacity() }
  }

  func hand(_ tag: Int) { preconditionFailure() }

  func answered(tag: Int, meaning: ReplyMeaning, name: [UInt8]?, from pool: ProviderPool) {
    precondition(answers[tag] == nil, "a push is reported once")
    answers[tag] = meaning
    names[tag] = name
  }
  func notSent(tag: Int, why: NotSentReason, from pool: ProviderPool) {
    notSent.append((tag, why))
    guard sendsAgain else { return }
    waiting.append(tag)
    pump()
  }
  func unknown(tag: Int, reason: String, from pool: ProviderPool) { unknown.append((tag, reason)) }
  func isWanted(tag: Int) -> Bool { !expired.contains(tag) }
  func capacityAvailable(in pool: ProviderPool) { pump() }
  func observed(_ event: PoolEvent, of name: String, from pool: ProviderPool) { events.append(event) }

  var delivered: Int { answers.values.count { $0.reaction == .delivered } }
}

extension Sender {
  /// The provider refuses the credential itself, or the topic.
  var isStopped: Bool { if case .stopped = account.state { true } else { false } }
}
