import PushCore

public enum CampaignState: Int64, CaseIterable, Sendable {
  case running = 0
  /// Stopped by an operator. Becomes running or cancelled.
  case paused = 1
  case cancelled = 2
  case completed = 3
  /// Stopped by the circuit breaker after too many refused tokens. Becomes running or cancelled by an operator.
  case held = 4

  public var name: String { "\(self)" }

  /// The operation that leads to this state.
  var verb: String {
    switch self {
    case .running: "resume"
    case .paused: "pause"
    case .cancelled: "cancel"
    case .completed: "complete"
    case .held: "hold"
    }
  }

  var sources: [CampaignState] {
    switch self {
    case .running: [.paused, .held]
    case .paused: [.running, .held]
    case .cancelled: [.running, .paused, .held]
    case .held: [.running]
    case .completed: []
    }
  }
}

/// The parameters of a new campaign, which is a send to an audience. Creating it again with the same id has no effect.
public struct CampaignDescription: Equatable, Sendable {
  /// Chosen by the creator, so that a redelivered request has the same id.
  public var id: [UInt8]
  public var app: [UInt8]
  public var messageID: [UInt8]
  /// For people, such as `/topics/news`.
  public var target: [UInt8]
  public var total: Int64
  /// Its devices have numbers above `lowWater` and up to `highWater`.
  public var lowWater: Int64
  public var highWater: Int64
  /// The number of its chains of pages: from 1 to ``mostChains``.
  public var chains: Int64

  public init(
    id: [UInt8], app: [UInt8], messageID: [UInt8], target: [UInt8], total: Int64, highWater: Int64, chains: Int64 = 1,
    lowWater: Int64 = 0
  ) {
    self.id = id
    self.app = app
    self.messageID = messageID
    self.target = target
    self.total = total
    self.lowWater = lowWater
    self.highWater = highWater
    self.chains = chains
  }
}

/// Each chain has an equal range of the device numbers, and numbers of its own for its pages.
extension CampaignDescription {
  /// More chains hardly make a broadcast faster, and leave less to others in its lane: docs/decisions/0050.
  public static let mostChains: Int64 = 4

  /// A chain's first page, and its devices: those with numbers above `after` and up to `upTo`.
  public func start(of chain: Int64) -> (page: Int64, after: Int64, upTo: Int64) {
    func end(of chain: Int64) -> Int64 { chain == chains ? highWater : min(lowWater + chain * span, highWater) }
    return (chain << 32, chain == 0 ? 0 : end(of: chain), end(of: chain + 1))
  }

  func chain(of device: Int64) -> Int64 { max(0, min((device - lowWater - 1) / span, chains - 1)) }

  private var span: Int64 { max((highWater - lowWater) / chains, 1) }
}

public struct Campaign: Equatable, Sendable {
  public var description: CampaignDescription
  public var state: CampaignState
  public var sent: Int64
  public var failed: Int64
  /// Number of settled pages, and number of all pages once the last one of each chain is known.
  public var pagesDone: Int64
  public var pageCount: Int64?
  /// Unix milliseconds.
  public var createdAt: Int64
  public var updatedAt: Int64
  public var finishedAt: Int64?
  /// When an operator last resumed it.
  public var resumedAt: Int64?
  /// When it was paused, held or cancelled; nil while it runs. `idle`: milliseconds of earlier pauses and holds.
  public var stoppedAt: Int64?
  public var idle: Int64 = 0
  /// Devices that acknowledged its message as received, and as read.
  public var received: Int64 = 0
  public var read: Int64 = 0
  /// Devices on pages of lost workers when the campaign was cancelled. It is unknown which of them were reached.
  public var unknown: Int64 = 0

  /// Failed devices by code and platform. Only set when a single campaign is shown.
  public var failures: [FailureCount] = []

  public var isComplete: Bool { pageCount.map { pagesDone >= $0 } ?? false }

  /// Estimated number of unsettled devices; 0 for a completed campaign. In a cancelled campaign, they will not be sent to.
  public var remaining: Int64 {
    switch state {
    case .completed: 0
    case .cancelled: max(0, description.total - sent - failed - unknown)
    case .running, .paused, .held: isComplete ? 0 : max(0, description.total - sent - failed)
    }
  }

  /// Devices per second while the campaign ran; nil before the first page.
  public var rate: Double? {
    let elapsed = Double(min(updatedAt, stoppedAt ?? .max) - createdAt - idle) / 1000
    return elapsed > 0 && sent + failed > 0 ? Double(sent + failed) / elapsed : nil
  }

  /// Estimated seconds until the last device, by ``rate``; nil unless it runs.
  public var timeLeft: Double? { state == .running ? rate.map { Double(remaining) / $0 } : nil }
}

/// Decides whether the caller publishes a campaign's result.
public enum ResultClaim: Equatable, Sendable {
  /// The caller does. The failures belong into the result.
  case claimed(failures: [FailureCount])
  /// Another worker has claimed it but not reported yet. Ask again later.
  case claimedElsewhere
  /// Nobody does: the result is published, or pages are missing.
  case notDue
}

public struct PageReport: Equatable, Sendable {
  public var campaign: [UInt8]
  public var page: Int64
  /// The last page of its chain.
  public var isLast: Bool
  public var isOfSeveralChains: Bool
  public var sent: Int64
  public var failed: Int64
  /// Devices for which it is unknown whether they were reached.
  public var unknown: Int64
  /// Failed devices by code and platform, as far as known.
  public var failures: [FailureCount]

  public init(
    campaign: [UInt8], page: Int64, isLast: Bool, isOfSeveralChains: Bool = false, sent: Int64, failed: Int64,
    unknown: Int64 = 0, failures: [FailureCount] = []
  ) {
    self.campaign = campaign
    self.page = page
    self.isLast = isLast
    self.isOfSeveralChains = isOfSeveralChains
    self.sent = sent
    self.failed = failed
    self.unknown = unknown
    self.failures = failures
  }
}

/// The stored state of an opened page, for a redelivery.
public struct PageRecord: Equatable, Sendable {
  /// The counts at its interruption; zero if unknown.
  public var sent: Int64
  public var failed: Int64
  /// The settled devices, in the writer's format.
  public var settled: [UInt8]
  /// True if the page was reported as done, so nothing is left to send.
  public var isDone: Bool
  public var extent: PageExtent?
  /// True if the page was opened but the outcome of its devices is unknown.
  public var isUnaccounted: Bool { extent != nil && settled.isEmpty && sent == 0 && failed == 0 }

  public init(sent: Int64, failed: Int64, settled: [UInt8], isDone: Bool = false, extent: PageExtent? = nil) {
    self.sent = sent
    self.failed = failed
    self.settled = settled
    self.isDone = isDone
    self.extent = extent
  }
}

/// The end of a page. It is fixed when the page is first opened, so that the page is the same each time.
public struct PageExtent: Equatable, Sendable {
  /// The highest device number of the page.
  public var end: Int64
  public var isLast: Bool
  /// The copy of the page's message that opened the page.
  public var copy: Int64
  /// Unix milliseconds; nil if an earlier build opened the page.
  public var openedAt: Int64?
}

public struct PageOpening: Sendable {
  public enum Content: Sendable {
    /// Members with numbers above `after` and up to `upTo`. At most `limit`, unless the page was opened before.
    case members(Audience, after: Int64, upTo: Int64, limit: Int)
    /// Registrations left over from an earlier round.
    case rest([[UInt8]])
  }

  public var campaign: [UInt8]
  public var page: Int64
  /// Distinguishes copies of one page's message after a crash. Only the copy that opened the page sends it, also if
  /// redelivered.
  public var copy: Int64
  public var app: [UInt8]
  public var kind: TokenKind
  public var content: Content

  public init(campaign: [UInt8], page: Int64, copy: Int64, app: [UInt8], kind: TokenKind = .alert, content: Content) {
    self.campaign = campaign
    self.page = page
    self.copy = copy
    self.app = app
    self.kind = kind
    self.content = content
  }
}

public enum OpenedPage: Sendable {
  /// Send nothing: the application has no such campaign.
  case unknown
  /// Send nothing: the page is settled. The campaign's result may still be due.
  case done(Campaign)
  /// Send nothing: another copy of its message has the page.
  case taken
  /// Don't send now: the campaign is paused, held or cancelled. The record is nil unless the page was opened before. The
  /// devices are those of a page that was opened before, if its campaign was cancelled.
  case stopped(Campaign, PageRecord?, DeviceRows = DeviceRows())
  /// Send the page, without the devices that the record lists as settled.
  case open(AudiencePage, PageRecord?, Campaign)
}
