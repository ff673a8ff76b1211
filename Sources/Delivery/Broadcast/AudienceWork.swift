import DeviceRegistry
import PushCore

/// The progress of a request to an audience, or of a page.
struct AudienceWork {
  enum Stage {
    /// The registry is asked. Becomes chaining, sending or ending.
    case asking
    /// The devices are known, and the next page's message awaits its confirm. Becomes sending.
    case chaining
    /// Pushes go out. Becomes ending.
    case sending
    /// All devices have ended; feedback, dead letters, the report, the result or the ladder's message are under way. Final.
    case ending
  }

  let audience: Audience
  private(set) var stage = Stage.asking
  var survey: AudienceEstimate?
  private(set) var settledBefore = SettledDevices()
  var campaign: Campaign?
  /// The campaign is to be held because the breaker is open.
  var isHeld = false
  var isResultClaimed = false
  /// The name in this worker's claims of the result. It stays the same, so a repeated claim renews the first.
  var claimant: [UInt8] = []
  /// The number of devices of an abandoned page that may have been reached.
  private(set) var unknown = 0
  /// The page must begin again, after the registry has saved its record.
  var beginsAgain = false
  /// The record to save; nil once it is saved.
  var unsaved: PageRecord?

  init(_ audience: Audience) { self.audience = audience }

  // MARK: stages

  mutating func chains() { if stage == .asking { stage = .chaining } }
  mutating func sends() { if stage != .ending { stage = .sending } }
  mutating func ends() { stage = .ending }

  // MARK: a page

  /// Begins a page with the devices that are registered now and the record of earlier deliveries.
  /// - Returns: those of the ticket's pending devices that are no longer registered.
  mutating func begin(_ page: inout PageTicket, _ read: AudiencePage, _ record: PageRecord?) -> [PageTicket.Device] {
    account(for: record, on: &page)
    guard let pending = page.pending else {
      page.isLast = read.isLast
      return []
    }
    var left = Set(pending.map(\.id))
    for index in 0..<read.devices.count { left.remove(read.devices[index].id) }
    left = left.filter { !settledBefore.contains($0) }
    page.failed += Int64(left.count)
    page.failureCounts.add(.notRegistered, on: nil, devices: Int64(left.count))
    let unregistered = pending.filter { left.contains($0.id) }
    if page.campaign.isEmpty { page.failures += unregistered }
    page.pending?.removeAll { left.contains($0.id) }
    return unregistered
  }

  /// Ends a page unsent because its campaign was cancelled. If the page was not begun, it has no successor and ends the chain.
  /// A redelivered page's pushes may be under way: a worker was lost, or its channel.
  /// - Parameter devices: all devices of a begun page.
  mutating func abandon(_ page: inout PageTicket, _ record: PageRecord?, _ devices: DeviceRows, isRedelivered: Bool) {
    if page.pending == nil { page.isLast = record?.extent?.isLast ?? true }
    account(for: record, on: &page)
    guard isRedelivered || page.pending == nil && record?.isUnaccounted == true else { return }
    unknown = page.pending?.count ?? devices.rows.count { !settledBefore.contains($0.id) }
  }

  /// Counts the devices that earlier deliveries have settled, either of the whole page or of the ticket's pending ones. The
  /// ticket has the others. From here on the ticket counts these too, because the page may be put off before anything is sent.
  private mutating func account(for record: PageRecord?, on page: inout PageTicket) {
    settledBefore = SettledDevices(record)
    if let pending = page.pending {
      settledBefore.keep(only: Set(pending.map(\.id)))
      page.pending = pending.filter { !settledBefore.contains($0.id) }
    } else {
      page.sent = 0
      page.failed = 0
      page.failureCounts = []
    }
    page.sent += Int64(settledBefore.sent)
    page.failed += Int64(settledBefore.failed)
  }
}

extension SettledDevices {
  /// Includes earlier deliveries. A failure counts only when all its consequences are confirmed.
  init(of entry: InFlight, _ work: AudienceWork) {
    self = work.settledBefore
    for recipient in entry.recipients {
      guard let id = entry.registry.rows?[recipient.row].id else { continue }
      switch recipient.state {
      case .delivered: note(id, isReached: true)
      case .failed where entry.ledger.owed == 0: note(id, isReached: false)
      case .failed, .waiting, .unresolved, .gone, .refused, .sent, .postponed, .sameAs: continue
      }
    }
  }
}
