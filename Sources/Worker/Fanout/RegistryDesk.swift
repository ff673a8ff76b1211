import PushCore
import Reactor
import Storage

/// What becomes of a question to the registry.
protocol RegistryDeskOwner: AnyObject {
  func registryAnswered(_ ask: RegistryDesk.Ask, _ answer: RegistryAnswer)
  /// The registry can't answer now, or refuses a value for good; the question had no effect, or one that is safe to repeat.
  func registryFailed(_ ask: RegistryDesk.Ask, _ error: StoreError)
  func registryChanged(isAvailable: Bool, _ reason: String)
  /// Writes of one kind fail, or no longer where there is no fault; look-ups go on.
  func registryWritesChanged(_ kind: WriteKind, _ fault: StoreError?)
}

/// A shard's questions to the registry, each with what it was asked for. Answers come in later turns, in the order of the questions;
/// the loop never waits.
final class RegistryDesk: RegistryHandler {
  enum Ask {
    /// Registrations of several requests, looked up together.
    case resolve([Place])
    /// One request's.
    case request(Step, entry: Int, generation: Int)
    /// A change of the registry that came as a message.
    case change(entry: Int, generation: Int)
    /// Tokens that answers spoke against.
    case marks([DeviceMark])
    /// A campaign is held: by the breaker, or because one of its pages is a dead letter.
    case hold(campaign: [UInt8])
    /// Upkeep whose answer isn't needed.
    case note
  }

  /// A registration among a request's recipients.
  struct Place {
    var entry: Int
    var generation: Int
    var recipient: Int
  }

  /// What a request waits for.
  enum Step {
    /// Whether its audience exists, and how large it is.
    case survey
    /// Whether a request that comes too late has had its campaign.
    case findCampaign
    case createCampaign
    /// The devices of a small audience, or those of them that an earlier round has left.
    case readSmall, readRest
    case openPage
    case reportPage
    /// What is settled of a page that begins again.
    case saveGrownPage
    /// Whether the campaign's result is to be published here.
    case claimResult
  }

  weak var owner: (any RegistryDeskOwner)?
  private var registry: (any RegistryDoor)?
  private var asks: [Ask?] = []
  private var free: [Int] = []

  /// - Throws: naming the setting when the location can't be parsed or there is no thread to be had.
  init(_ location: String, limits: RegistryLimits, host: any ShardHost) throws(ConfigurationError) {
    let parsed: RegistryLocation
    do throws(StoreError) { parsed = try RegistryLocation(parsing: location) } catch {
      throw ConfigurationError(key: "registry", problem: "cannot be used: \(error)")
    }
    do throws(SystemError) { registry = try host.openRegistry(parsed, limits, self) } catch {
      throw ConfigurationError(key: "registry", problem: "has no thread: \(error)")
    }
  }

  /// Nothing waits for an answer.
  var isIdle: Bool { (registry?.waiting ?? 0) == 0 }

  /// Reports to the owner, at once when the registry refuses at once.
  func ask(_ ask: Ask, _ request: RegistryRequest) {
    let tag = free.popLast() ?? asks.count
    if tag == asks.count { asks.append(ask) } else { asks[tag] = ask }
    do throws(StoreError) {
      guard let registry else { throw .unavailable(.down, "closed") }
      try registry.submit(request, tag: tag)
    } catch {
      take(tag)
      owner?.registryFailed(ask, error)
    }
  }

  /// Changes that were asked for and aren't begun fail.
  func withdrawChanges() { registry?.withdrawChanges() }

  /// What was asked before is still done; no answer is reported any more.
  func close() {
    registry?.close()
    registry = nil
  }

  @discardableResult
  private func take(_ tag: Int) -> Ask? {
    let ask = asks[tag]
    asks[tag] = nil
    free.append(tag)
    return ask
  }

  // MARK: RegistryHandler

  func registryAnswered(_ tag: Int, _ answer: RegistryAnswer) {
    if let ask = take(tag) { owner?.registryAnswered(ask, answer) }
  }

  func registryFailed(_ tag: Int, _ error: StoreError) {
    if let ask = take(tag) { owner?.registryFailed(ask, error) }
  }

  func registryUnavailable(_ error: StoreError) { owner?.registryChanged(isAvailable: false, "\(error)") }
  func registryAvailable() { owner?.registryChanged(isAvailable: true, "") }
  func registryWritesChanged(_ kind: WriteKind, _ fault: StoreError?) { owner?.registryWritesChanged(kind, fault) }
}
