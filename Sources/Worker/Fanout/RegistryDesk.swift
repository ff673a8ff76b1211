import PushCore
import Reactor
import Storage

/// What becomes of a question to the registry.
protocol RegistryDeskOwner: AnyObject {
  func registryAnswered(_ ask: RegistryDesk.Ask, _ answer: RegistryAnswer)
  /// The registry can't answer now; the question had no effect.
  func registryFailed(_ ask: RegistryDesk.Ask, _ reason: String)
  func registryChanged(isAvailable: Bool, _ reason: String)
}

/// A shard's questions to the registry, each with what it was asked for. Answers come in later turns; the loop never waits.
final class RegistryDesk: RegistryHandler {
  enum Ask {
    /// Registrations of several requests, looked up together: request, generation, recipient.
    case resolve([(entry: Int, generation: Int, recipient: Int)])
    case survey(entry: Int, generation: Int)
    case create(entry: Int, generation: Int)
    case account(entry: Int, generation: Int)
    case record(entry: Int, generation: Int)
    /// Whether the page after this one is on the queue.
    case following(entry: Int, generation: Int)
    case page(entry: Int, generation: Int)
    case done(entry: Int, generation: Int)
    case finish(entry: Int, generation: Int)
    case change(entry: Int, generation: Int)
    case marks
    /// Holding a campaign, by its id.
    case hold([UInt8])
    case save
  }

  weak var owner: (any RegistryDeskOwner)?
  private var registry: Registry?
  private var asks: [Ask?] = []
  private var free: [Int] = []

  /// - Throws: naming the setting when the location can't be parsed or there is no thread to be had.
  init(_ location: String, loop: EventLoop) throws(ConfigurationError) {
    let parsed: RegistryLocation
    do throws(StoreError) { parsed = try RegistryLocation(parsing: location) } catch {
      throw ConfigurationError(key: "registry", problem: "cannot be used: \(error)")
    }
    do throws(SystemError) { registry = try Registry(parsed, loop: loop, handler: self) } catch {
      throw ConfigurationError(key: "registry", problem: "has no thread: \(error)")
    }
  }

  var isAvailable: Bool {
    switch registry?.condition {
    case .available, .opening: true
    case .unavailable, .closed, nil: false
    }
  }

  /// False, after `registryFailed`, when the registry refuses at once.
  @discardableResult
  func ask(_ ask: Ask, _ request: RegistryRequest) -> Bool {
    let tag = free.popLast() ?? asks.count
    if tag == asks.count { asks.append(ask) } else { asks[tag] = ask }
    do throws(StoreError) {
      guard let registry else { throw .unavailable(.down, "no registry") }
      try registry.submit(request, tag: tag)
      return true
    } catch {
      take(tag)
      owner?.registryFailed(ask, "\(error)")
      return false
    }
  }

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
    if let ask = take(tag) { owner?.registryFailed(ask, "\(error)") }
  }

  func registryUnavailable(_ error: StoreError) { owner?.registryChanged(isAvailable: false, "\(error)") }
  func registryAvailable() { owner?.registryChanged(isAvailable: true, "") }
}
