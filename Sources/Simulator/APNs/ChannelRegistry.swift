/// The broadcast channels of a simulator's applications.
struct ChannelRegistry {
  /// Whether APNs stores the latest broadcast for devices that are offline.
  enum Policy: Int64 {
    case storesNothing = 0
    case storesLatest = 1
  }

  /// Most channels of an application in one environment (Apple, "Sending channel management requests to APNs").
  static let most = 10_000

  private var channels: [[UInt8]: [[UInt8]: Policy]] = [:]

  /// Adds a channel with a new id; nil if the application has the most channels allowed.
  mutating func make(for app: [UInt8], _ policy: Policy, id: [UInt8]) -> [UInt8]? {
    guard channels[app, default: [:]].count < Self.most else { return nil }
    channels[app, default: [:]][id] = policy
    return id
  }

  func policy(of id: [UInt8], _ app: [UInt8]) -> Policy? { channels[app]?[id] }

  /// Returns false if the channel doesn't exist.
  mutating func remove(_ id: [UInt8], of app: [UInt8]) -> Bool { channels[app]?.removeValue(forKey: id) != nil }

  func all(of app: [UInt8]) -> [[UInt8]] { channels[app, default: [:]].keys.sorted { $0.lexicographicallyPrecedes($1) } }
}
