import PushCore

/// The state of a campaign, the same for every worker.
public enum CampaignState: Int64, CaseIterable, Sendable {
  /// Pages are sent. Becomes any other.
  case running = 0
  /// An operator stopped it for now. Becomes running or cancelled.
  case paused = 1
  /// An operator ended it. Final.
  case cancelled = 2
  /// The last device is settled. Final.
  case completed = 3
  /// The breaker stopped it: too many dead answers. Becomes running or cancelled by an operator.
  case held = 4

  public var name: String {
    switch self {
    case .running: "running"
    case .paused: "paused"
    case .cancelled: "cancelled"
    case .completed: "completed"
    case .held: "held"
    }
  }

  /// From which states a campaign may come to this one.
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

/// A send to an audience, as it is created. Creating it again under the same id changes nothing.
public struct CampaignDescription: Equatable, Sendable {
  /// Chosen by whoever creates it, such that a redelivered request has the same.
  public var id: [UInt8]
  public var app: [UInt8]
  public var messageID: [UInt8]
  /// For people: `/topics/news`.
  public var target: [UInt8]
  /// The estimated number of devices.
  public var total: Int64
  public var highWater: Int64

  public init(id: [UInt8], app: [UInt8], messageID: [UInt8], target: [UInt8], total: Int64, highWater: Int64) {
    self.id = id
    self.app = app
    self.messageID = messageID
    self.target = target
    self.total = total
    self.highWater = highWater
  }
}

/// A campaign as it stands.
public struct Campaign: Equatable, Sendable {
  public var description: CampaignDescription
  public var state: CampaignState
  public var sent: Int64
  public var failed: Int64
  /// Pages settled, and the number of pages once the last one is known.
  public var pagesDone: Int64
  public var pageCount: Int64?
  /// Unix milliseconds.
  public var createdAt: Int64
  public var updatedAt: Int64
  public var finishedAt: Int64?
  /// When an operator last let it run again after it was paused or held.
  public var resumedAt: Int64?
  /// Since when it is paused, held or cancelled; and for how many milliseconds it was paused or held before.
  public var stoppedAt: Int64?
  public var idle: Int64 = 0
  /// Devices that have acknowledged its message: as received, and as read.
  public var received: Int64 = 0
  public var read: Int64 = 0
  /// Devices of pages that were begun by a worker that was lost, when the campaign was cancelled: who of them was reached nobody knows.
  public var unknown: Int64 = 0

  /// How many devices failed of each code and platform: known where one campaign is shown.
  public var failures: [FailureCount] = []

  /// Every page is settled.
  public var isComplete: Bool { pageCount.map { pagesDone >= $0 } ?? false }

  /// Devices not yet settled, by the estimate; 0 once the campaign is completed. Of a cancelled one they are those that will not be
  /// sent to, though its pages are settled.
  public var remaining: Int64 {
    switch state {
    case .completed: 0
    case .cancelled: max(0, description.total - sent - failed - unknown)
    case .running, .paused, .held: isComplete ? 0 : max(0, description.total - sent - failed)
    }
  }

  /// Devices a second of the time for which the campaign ran, nil before the first page.
  public var rate: Double? {
    let elapsed = Double(min(updatedAt, stoppedAt ?? .max) - createdAt - idle) / 1000
    return elapsed > 0 && sent + failed > 0 ? Double(sent + failed) / elapsed : nil
  }

  /// Seconds until the last device by ``rate``, while it runs.
  public var timeLeft: Double? { state == .running ? rate.map { Double(remaining) / $0 } : nil }
}

/// Who publishes a campaign's result.
public enum ResultClaim: Equatable, Sendable {
  /// Whoever asks. The failures are the result's.
  case claimed(failures: [FailureCount])
  /// Another worker, which hasn't reported since: ask again later.
  case claimedElsewhere
  /// No worker: it is published, or pages are missing.
  case notDue
}

/// What a worker reports of a page of a campaign.
public struct PageReport: Equatable, Sendable {
  public var campaign: [UInt8]
  /// From 0.
  public var page: Int64
  public var isLast: Bool
  public var sent: Int64
  public var failed: Int64
  /// Devices of which nobody knows whether they were reached.
  public var unknown: Int64
  /// The failed devices by code and platform, as far as they are known.
  public var failures: [FailureCount]

  public init(
    campaign: [UInt8], page: Int64, isLast: Bool, sent: Int64, failed: Int64, unknown: Int64 = 0, failures: [FailureCount] = []
  ) {
    self.campaign = campaign
    self.page = page
    self.isLast = isLast
    self.sent = sent
    self.failed = failed
    self.unknown = unknown
    self.failures = failures
  }
}

/// What is known of a page that was begun, for whoever gets it redelivered.
public struct PageRecord: Equatable, Sendable {
  /// What had been settled when it was interrupted; zero and empty where that isn't known.
  public var sent: Int64
  public var failed: Int64
  /// Which devices: in the form that the writer chose.
  public var settled: [UInt8]
  /// The page was reported as done: there is nothing left to send.
  public var isDone: Bool
  /// Where it ends; nil when it was never opened.
  public var extent: PageExtent?
  /// Somebody has opened it and has not left what became of its devices.
  public var isUnaccounted: Bool { extent != nil && settled.isEmpty && sent == 0 && failed == 0 }

  public init(sent: Int64, failed: Int64, settled: [UInt8], isDone: Bool = false, extent: PageExtent? = nil) {
    self.sent = sent
    self.failed = failed
    self.settled = settled
    self.isDone = isDone
    self.extent = extent
  }
}

/// Where a page ends, fixed when it is first opened: whatever devices come and go, it is the same the next time.
public struct PageExtent: Equatable, Sendable {
  /// The highest device number that belongs to it.
  public var end: Int64
  public var isLast: Bool
  /// Which copy of the page's message has opened it.
  public var copy: Int64

  public init(end: Int64, isLast: Bool, copy: Int64) {
    self.end = end
    self.isLast = isLast
    self.copy = copy
  }
}

/// A page of a campaign that a worker has been given.
public struct PageOpening: Sendable {
  public enum Content: Sendable {
    /// Members with numbers above `after` and up to `upTo`; `limit` of them unless the page was opened before.
    case members(Audience, after: Int64, upTo: Int64, limit: Int)
    /// What an earlier round has left, by registrations.
    case rest([[UInt8]])
  }

  public var campaign: [UInt8]
  /// From 0.
  public var page: Int64
  /// Tells apart the copies of one page's message: after a crash there may be several, and only the one that was first to open the
  /// page sends it, as often as it is redelivered.
  public var copy: Int64
  public var app: [UInt8]
  /// Of the tokens that it is sent to.
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

/// What is to be done with a page.
public enum OpenedPage: Sendable {
  /// Nothing: the application has no such campaign, and nothing is sent without an account.
  case unknown
  /// Nothing: it is settled. The campaign's result may still be owed.
  case done(Campaign)
  /// Nothing: another copy of its message has it.
  case taken
  /// It is not to be sent, at least not now: the campaign is paused, held or cancelled. The record is nil unless the page was opened
  /// before. `devices`: how many the page of a cancelled campaign has where nobody knows what became of them.
  case stopped(Campaign, PageRecord?, devices: Int = 0)
  /// It is to be sent, but for what the record names as settled.
  case open(AudiencePage, PageRecord?, Campaign)
}

/// How many campaigns there are of each state, and how the latest ones stand.
public struct CampaignSurvey: Sendable {
  public var counts: [CampaignState: Int]
  public var latest: [Campaign]

  public init(counts: [CampaignState: Int], latest: [Campaign]) {
    self.counts = counts
    self.latest = latest
  }
}
