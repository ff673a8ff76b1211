import DeviceRegistry
import PushCore

/// How far a request to an audience, or a page of one, has come.
struct AudienceWork {
  enum Stage {
    /// The registry decides what is to be done. Becomes chaining, sending or ending.
    case asking
    /// The devices are known; the message of the next page is on its way to the queue. Becomes sending.
    case chaining
    /// Pushes go out. Becomes ending.
    case sending
    /// All devices have ended: feedback, dead letters, the report, the result or the message for the ladder are on their way. Final.
    case ending
  }

  let audience: Audience
  private(set) var stage = Stage.asking
  var survey: AudienceSurvey?
  /// What is known of earlier deliveries of the page.
  private(set) var settledBefore = SettledDevices()
  var campaign: Campaign?
  /// The breaker has asked for the campaign to be held.
  var isHeld = false
  /// The campaign's result is published from here.
  var isResultClaimed = false
  /// Who asks for that: one name, so that asking again keeps the claim.
  var claimant: [UInt8] = []
  /// Devices of a page that ends unsent which may have been reached.
  private(set) var unknown = 0
  /// The page begins again once the registry has its record.
  var beginsAgain = false
  /// That record, until the registry has it.
  var unsaved: PageRecord?

  init(_ audience: Audience) { self.audience = audience }

  // MARK: stages

  mutating func chains() { if stage == .asking { stage = .chaining } }
  mutating func sends() { if stage != .ending { stage = .sending } }
  mutating func ends() { stage = .ending }

  // MARK: a page

  /// A page begins, with the devices that the registry has of it now and what is known of earlier deliveries.
  /// - Returns: how many of the devices that its ticket names as left are registered no more.
  mutating func begin(_ page: inout PageTicket, _ read: AudiencePage, _ record: PageRecord?) -> Int {
    account(for: record, on: &page)
    guard let pending = page.pending else {
      page.isLast = read.isLast
      return 0
    }
    var left = Set(pending.map(\.id))
    for index in 0..<read.devices.count { left.remove(read.devices[index].id) }
    left = left.filter { !settledBefore.contains($0) }
    page.failed += Int64(left.count)
    page.failureCounts.add(.notRegistered, on: nil, devices: Int64(left.count))
    if page.campaign.isEmpty { page.failures += pending.filter { left.contains($0.id) } }
    page.pending?.removeAll { left.contains($0.id) }
    return left.count
  }

  /// A page ends unsent, as its campaign was cancelled. One that was not begun has no successor, and so ends the chain.
  /// - Parameters:
  ///   - devices: of a page that was begun, where nobody knows what became of them.
  ///   - isRedelivered: a worker was lost while it had the page.
  mutating func abandon(_ page: inout PageTicket, _ record: PageRecord?, devices: Int, isRedelivered: Bool) {
    if page.pending == nil { page.isLast = record?.extent?.isLast ?? true }
    account(for: record, on: &page)
    unknown = page.pending.map { isRedelivered ? $0.count : 0 } ?? devices
  }

  /// Counts what is known of earlier deliveries of the page: of all its devices, or of those that its ticket names as left. The ticket has
  /// counted the others, and these from here on: it may be put off before anything is sent.
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

  /// What follows from a page whose devices have all ended or wait for their next attempt.
  enum PageEnd: Equatable {
    /// To the ladder: some devices are to be tried again.
    case retry
    /// Too many devices are left to be named by a message: the page is to begin again, less what the registry knows of it.
    case beginAgain(at: Int64)
    /// A small audience's: the result.
    case result
    /// A campaign's: the registry is to hear of it.
    case report
  }

  /// Counts what has become of a page's devices into its ticket.
  mutating func end(_ page: inout PageTicket, _ recipients: [Recipient], _ rows: DeviceRows?) -> PageEnd {
    stage = .ending
    var counted = page
    var pending: [PageTicket.Device] = []
    var earliest = Int64.max
    for recipient in recipients {
      switch recipient.state {
      case .delivered: counted.sent += 1
      case .failed(let error):
        counted.failed += 1
        counted.failureCounts.add(error, on: recipient.platform)
        if page.campaign.isEmpty, let row = rows?[recipient.row] { counted.failures.append(.init(id: row.id, salt: row.salt)) }
      case .postponed(let until):
        earliest = min(earliest, until)
        if let row = rows?[recipient.row] { pending.append(.init(id: row.id, salt: row.salt)) }
      case .waiting, .unresolved, .gone, .sent, .refused, .sameAs: continue
      }
    }
    if pending.count > PageTicket.mostPending { return .beginAgain(at: earliest) }
    counted.pending = pending
    page = counted
    if !pending.isEmpty { return .retry }
    return page.campaign.isEmpty ? .result : .report
  }
}

extension SettledDevices {
  /// Those of earlier deliveries included. A failure counts only when what follows from it is safe.
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
