import DeviceRegistry
import PushCore

/// Devices, and the broadcasts whose audience they currently belong to, read from the registry.
struct DeviceHistory {
  struct Broadcast {
    let campaign: Campaign
    let device: DeviceRecord
    /// The page that includes the device; nil if the broadcast hasn't reached it yet.
    let page: CampaignPage?
    /// Of its message, by the device.
    var acknowledgements: [TraceStory.Acknowledgement] = []

    enum Outcome: Equatable {
      case accepted
      /// In the audience now, but there is no evidence that the broadcast was sent to it.
      case unknown
      /// In this state since before the broadcast, which skips it.
      case left(DeviceState)
      /// The broadcast hasn't reached the device or hasn't finished its page.
      case open
      /// Cancelled before the device's turn.
      case notSent
    }

    var outcome: Outcome {
      if !acknowledgements.isEmpty { return .accepted }
      let isLeftOut = device.state == .gone || device.state == .stale && leavesOutStale
      if isLeftOut, let since = device.markedAt, since <= campaign.createdAt {
        return .left(device.state)
      }
      guard let page else { return campaign.state.isOver ? .notSent : .open }
      if campaign.state == .cancelled, page.isDone, page.sent + page.failed == 0 { return .notSent }
      return .unknown
    }

    /// True for topics, conditions and all devices; broadcasts to users and groups include stale devices.
    private var leavesOutStale: Bool {
      switch Target.classify(campaign.description.target) {
      case .success(.user), .success(.group): false
      default: true
      }
    }
  }

  let devices: [DeviceRecord]
  /// The broadcast that the user named, if any.
  let campaign: Campaign?
  let broadcasts: [Broadcast]
  private let store: DeviceStore

  static let mostCampaigns = 10_000
  private static let mostBroadcasts = 100

  /// - Parameter most: the newest campaigns to look at.
  init(
    of devices: [DeviceRecord], campaign: Campaign?, in store: DeviceStore, most: Int = DeviceHistory.mostCampaigns
  ) throws(RegistryError) {
    self.devices = devices
    self.campaign = campaign
    self.store = store
    let campaigns = if let campaign { [campaign] } else { try store.campaigns(limit: most) }
    var broadcasts: [Broadcast] = []
    for device in devices {
      var room = Self.mostBroadcasts
      for campaign in campaigns
      where campaign.description.app == device.device.app && device.id <= campaign.description.highWater {
        guard room > 0, try Self.isMember(device, of: campaign, store) else { continue }
        room -= 1
        broadcasts.append(
          Broadcast(
            campaign: campaign, device: device, page: try store.page(of: campaign.description, reaching: device.id)))
      }
    }
    self.broadcasts = broadcasts
  }

  private static func isMember(
    _ device: DeviceRecord, of campaign: Campaign, _ store: DeviceStore
  ) throws(RegistryError) -> Bool {
    let text = campaign.description.target
    // Unless a request says otherwise, broadcasts go to alert tokens.
    guard device.device.kind == nil || device.device.platform != .apns else { return false }
    if let condition = try? Condition.parse(text) {
      var subscribed: UInt32 = 0
      for (index, topic) in condition.topics.enumerated() where device.device.topics.contains(topic) {
        subscribed |= 1 << UInt32(index)
      }
      return condition.matches(subscribed)
    }
    switch Target.classify(text) {
    case .success(.all): return true
    case .success(.topic(let topic)): return device.device.topics.contains(topic)
    case .success(.user(let user)): return device.device.user == user
    case .success(.group(let key)):
      guard let group = try store.group(.key(key), app: device.device.app) else { return false }
      return group.devices.contains(device.registration) || device.device.user.map { group.users?.contains($0) == true } == true
    default: return false
    }
  }

  /// When each device acknowledged the messages, in the order of the ids.
  func acknowledgements(of messages: [[UInt8]]) throws(RegistryError) -> [(DeviceRecord, [AcknowledgementTimes])] {
    try devices.map { device throws(RegistryError) in (device, try store.acknowledgements(of: messages, by: device.id)) }
  }

  /// Why a request to a user reached no device; nil if the registry can't be read.
  static func unreachable(user: [UInt8], app: [UInt8], _ options: Options) -> String? {
    guard let session = try? RegistrySession(options),
      let devices = try? session.store.devices(ofUser: user, app: app, limit: 1_000)
    else { return nil }
    guard !devices.isEmpty else { return "no device is registered for the user" }
    let words = devices.filter { $0.state != .active }.map { device in
      let reason = device.reason.map { String(printing: $0) }
      let since = device.markedAt.map { "since \(Figures.time($0))" }
      let why = [reason, since].compactMap(\.self).joined(separator: " ")
      return "1 device is \(device.state.word)\(why.isEmpty ? "" : " (\(why))")"
    }
    return words.isEmpty ? nil : words.joined(separator: "; ")
  }
}
