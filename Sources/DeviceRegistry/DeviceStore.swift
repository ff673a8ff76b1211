import PushCore

/// What a registry does, whichever database it is in.
///
/// Synchronous: every call blocks on the database, so it belongs on a thread of its own (``Registry`` does that for a loop) or in a
/// command. Confined to one thread at a time. Times are Unix milliseconds.
public protocol DeviceStore: AnyObject {
  // MARK: Changes

  /// Applies the changes in order in one transaction: all of them are stored when it returns, none when it throws. A refusal is an
  /// answer, has no effect, and doesn't touch the others.
  /// - Parameter fence: the number that whoever applies them has claimed; nil for what comes from no queue.
  /// - Throws: `fenced` where another one has been claimed since.
  func apply(_ changes: [RegistryChange], fence: Int64?, now: Int64) throws(RegistryError) -> [ChangeAnswer]

  /// Claims the changes of the registry's queue: from now on those with an earlier number are fenced.
  func claimChanges() throws(RegistryError) -> Int64

  /// Marks tokens by what their provider said of them. Never waits for who changes a device right now: that one is busy.
  func mark(_ marks: [DeviceMark], now: Int64) throws(RegistryError) -> [MarkOutcome]

  // MARK: Reading for delivery

  /// The devices of registrations, of any number of apps, gone ones included: their state says so.
  func resolve(_ lookUps: [LookUp]) throws(RegistryError) -> Resolution

  /// Whose the devices of these numbers are; one that is registered no more isn't among them.
  /// - Parameter ids: ascending.
  func owners(of ids: [Int64]) throws(RegistryError) -> [Int64: DeviceOwner]

  func survey(_ audience: Audience, app: [UInt8]) throws(RegistryError) -> AudienceSurvey

  /// Of the tokens of a kind: the members with numbers above `cursor` (0 at first) and up to `highWater`, at most `limit` of them. A device that is a member
  /// throughout is on exactly one page, however others come and go.
  func page(
    of audience: Audience, kind: TokenKind, app: [UInt8], after cursor: Int64, upTo highWater: Int64, limit: Int
  ) throws(RegistryError) -> AudiencePage

  // MARK: Campaigns

  /// Makes a campaign, or finds the one already made under this id.
  func createCampaign(_ campaign: CampaignDescription, now: Int64) throws(RegistryError) -> Campaign
  /// Takes up a page: decides in one step whether it is to be sent, and by whom, and reads its devices.
  func openPage(_ opening: PageOpening, now: Int64) throws(RegistryError) -> OpenedPage
  /// Adds a page's counts, once however often it is reported. Nil when there is no such campaign.
  func pageDone(_ report: PageReport, now: Int64) throws(RegistryError) -> Campaign?
  /// Keeps what an interrupted page had settled.
  func savePage(_ record: PageRecord, campaign: [UInt8], page: Int64, now: Int64) throws(RegistryError)
  func loadPage(campaign: [UInt8], page: Int64) throws(RegistryError) -> PageRecord?
  /// Who is to publish the campaign's result: the first who asks once all pages are done, and another one when the result is not known
  /// to be out `lease` milliseconds after the first has asked last, as it may have died. Time is the database's.
  func finish(_ campaign: [UInt8], claimant: [UInt8], lease: Int64) throws(RegistryError) -> ResultClaim
  /// The campaign's result is out: nobody else is to publish it.
  func resultPublished(_ campaign: [UInt8], now: Int64) throws(RegistryError)
  /// Moves a campaign to a state. False when it isn't in a state that allows it. A campaign that was held and runs again is never
  /// held a second time: an operator has judged it.
  func setState(_ state: CampaignState, of campaign: [UInt8], now: Int64) throws(RegistryError) -> Bool
  func campaign(_ id: [UInt8]) throws(RegistryError) -> Campaign?
  /// How many devices failed of each code and platform, the most first.
  func failures(of campaign: [UInt8]) throws(RegistryError) -> [FailureCount]
  /// How many there are of each state.
  func countCampaigns() throws(RegistryError) -> [CampaignState: Int]
  /// The newest first.
  func campaigns(limit: Int) throws(RegistryError) -> [Campaign]

  // MARK: What is noted

  /// Notes what comes together, as one by one: all of it is stored when it returns, and where it throws, none of it, or what is safe to repeat.
  /// - Parameter notes: with the time of each.
  /// - Returns: the answers in order, and whether anything was to be written.
  func note(_ notes: [(note: Note, now: Int64)]) throws(RegistryError) -> (answers: [NoteAnswer], hasWritten: Bool)

  /// Notes what devices say in one transaction: all of it is stored when it returns, nothing when it throws. A reception and a read are
  /// noted once for a device and message, whoever says it again; the badge rule of a read is applied with it.
  func acknowledge(
    _ acknowledgements: [Acknowledgement], wantsReceipts: Bool, now: Int64
  ) throws(RegistryError) -> [AcknowledgementOutcome]
  /// 0 where none is counted.
  func badge(ofInstallation installation: [UInt8], app: [UInt8]) throws(RegistryError) -> Int64

  // MARK: Requests that wait

  /// Notes which requests wait: the newest in each place stands, whoever comes later. Places once each.
  func noteWaiting(_ notes: [CollapseNote]) throws(RegistryError)
  /// Answered in the order of the places; nil where none was noted.
  func newestWaiting(in places: [CollapsePlace]) throws(RegistryError) -> [CollapseOrder?]

  // MARK: Content that pushes have no room for

  /// Nil where there is no such page, or no longer.
  func content(ofPage name: [UInt8], now: Int64) throws(RegistryError) -> [UInt8]?

  // MARK: For commands

  func device(_ reference: DeviceReference, app: [UInt8]) throws(RegistryError) -> [DeviceRecord]
  /// A user's, in ascending order of their numbers, gone ones included.
  func devices(ofUser user: [UInt8], app: [UInt8], limit: Int) throws(RegistryError) -> [DeviceRecord]
  /// The page of a campaign on which a device of the audience is, by its number; nil while no page has come as far.
  func page(of campaign: [UInt8], reaching device: Int64) throws(RegistryError) -> CampaignPage?
  /// When a device acknowledged messages, in the order of their ids.
  func acknowledgements(of messages: [[UInt8]], by device: Int64) throws(RegistryError) -> [AcknowledgementTimes]
  /// Devices in ascending order of their numbers, of one app or of all.
  func devices(app: [UInt8]?, after id: Int64, limit: Int) throws(RegistryError) -> [DeviceRecord]
  /// The same of one state other than active, which they have had since `since` or later.
  func devices(
    app: [UInt8], in state: DeviceState, since: Int64, after id: Int64, limit: Int
  ) throws(RegistryError) -> [DeviceRecord]
  /// How many devices there are of each application, platform, kind and state, of one app or of all.
  func deviceCounts(app: [UInt8]?) throws(RegistryError) -> [DeviceCount]
  /// Topics in the order of their names' bytes.
  func topics(app: [UInt8], after name: [UInt8], limit: Int) throws(RegistryError) -> [TopicRecord]
  func group(_ group: GroupReference, app: [UInt8]) throws(RegistryError) -> GroupRecord?
  /// Stores many registrations at once; row by row, the answers are those of ``apply(_:now:)``.
  func load(_ registrations: [Registration], now: Int64) throws(RegistryError) -> [ChangeAnswer]
  /// Brings the planner's statistics up to date: after a bulk load.
  func analyze() throws(RegistryError)

  // MARK: Who comes in by the gateway

  func createKey(_ key: GatewayKey) throws(RegistryError)
  /// The oldest first, revoked ones included.
  func keys() throws(RegistryError) -> [GatewayKey]
  func key(_ id: [UInt8]) throws(RegistryError) -> GatewayKey?
  /// False where there is none, or it was revoked before.
  func revokeKey(_ id: [UInt8], now: Int64) throws(RegistryError) -> Bool
  func keyUsed(_ id: [UInt8], now: Int64) throws(RegistryError)
  /// The hash of what a device proves itself with, by the installation that it is.
  func secret(ofInstallation installation: [UInt8], app: [UInt8]) throws(RegistryError) -> [UInt8]?
  /// False where the installation has one, which isn't to be replaced.
  func setSecret(
    _ hash: [UInt8], ofInstallation installation: [UInt8], app: [UInt8], replacing: Bool, now: Int64
  ) throws(RegistryError) -> Bool
  /// False where it had none.
  func removeSecret(ofInstallation installation: [UInt8], app: [UInt8]) throws(RegistryError) -> Bool

  // MARK: Upkeep

  /// Claims devices that were last seen too long ago, so that no other worker feeds them back.
  func claimStale(_ search: StaleSearch, now: Int64) throws(RegistryError) -> StaleDevices
  /// They have been fed back: broadcasts pass over them, unless they have registered since.
  func markStale(_ ids: [Int64], seenBefore: Int64, now: Int64) throws(RegistryError)

  /// Removes devices gone and campaigns over since before these times, a bounded number a call; returns how many.
  func purge(goneBefore: Int64, campaignsBefore: Int64, limit: Int) throws(RegistryError) -> Int
  /// Removes tokens of live activities that were registered last before a time, a bounded number a call; returns how many.
  func purgeActivities(before: Int64, limit: Int) throws(RegistryError) -> Int
  /// Removes what was noted before a time, a bounded number a call; returns how many.
  func purgeNotes(before: Int64, limit: Int) throws(RegistryError) -> Int
  /// Removes what was noted of requests that nobody waits for any more, a bounded number a call; returns how many.
  func purgeWaiting(before: Int64, limit: Int) throws(RegistryError) -> Int
  /// Removes content whose time is over, a bounded number a call; returns how many.
  func purgeContent(before: Int64, limit: Int) throws(RegistryError) -> Int
  /// Removes requests that are known no longer, a bounded number a call; returns how many.
  func purgeRequests(before: Int64, limit: Int) throws(RegistryError) -> Int
  /// Removes secrets of installations that are registered no more and got theirs before a time, a bounded number a call; returns how many.
  func purgeSecrets(before: Int64, limit: Int) throws(RegistryError) -> Int
  /// Cheap: whether the store answers, or whether a write may begin.
  func probe(isWriting: Bool) throws(RegistryError)
}

extension DeviceStore {
  /// Changes that come from no queue.
  public func apply(_ changes: [RegistryChange], now: Int64) throws(RegistryError) -> [ChangeAnswer] {
    try apply(changes, fence: nil, now: now)
  }
}
