import PushCore
import Wire

/// Writes devices in an import format, portion by portion. Omits gone devices, because an import would revive them.
public final class BulkExport {
  public private(set) var exported = 0

  private let store: DeviceStore
  private let format: BulkFormat
  private let app: [UInt8]?
  private let fields: [ChangeField]
  private var cursor: Int64 = 0
  private var isHeaderDue: Bool
  private var isEnded = false

  private static let portion = 1_000

  /// - Parameters:
  ///   - app: nil for all apps.
  ///   - withTimes: includes the registration time of each device.
  public init(from store: DeviceStore, format: BulkFormat, app: [UInt8]?, withTimes: Bool = false) {
    self.store = store
    self.format = format
    self.app = app
    fields = (format == .csv ? ChangeField.columns : ChangeField.registering).filter { withTimes || $0 != .registeredAt }
    isHeaderDue = format == .csv
  }

  /// The next bytes of the file; nil at its end.
  public func next() throws(RegistryError) -> [UInt8]? {
    guard !isEnded else { return nil }
    var output: [UInt8] = []
    if isHeaderDue {
      isHeaderDue = false
      output += Array(fields.map(\.rawValue).joined(separator: ",").utf8) + [0x0A]
    }
    let records = try store.devices(app: app, after: cursor, limit: Self.portion)
    if let last = records.last { cursor = last.id }
    isEnded = records.count < Self.portion
    for record in records where record.state != .gone {
      exported += 1
      switch format {
      case .csv: appendRow(record.device, to: &output)
      case .ndjson: output += object(record.device)
      }
      output.append(0x0A)
    }
    return output
  }

  private func appendRow(_ device: Registration, to output: inout [UInt8]) {
    for (index, field) in fields.enumerated() {
      if index > 0 { output.append(UInt8(ascii: ",")) }
      let text = field == .topics ? Array(device.topics.joined(separator: [UInt8(ascii: "|")])) : device.text(field) ?? []
      let isQuoted = text.contains { $0 == 0x22 || $0 == 0x2C || $0 == 0x0A || $0 == 0x0D }
      output += isQuoted ? [0x22] + text.flatMap { $0 == 0x22 ? [$0, $0] : [$0] } + [0x22] : text
    }
  }

  private func object(_ device: Registration) -> [UInt8] {
    var object = JSONObjectWriter()
    for field in fields {
      switch field {
      case .topics: if !device.topics.isEmpty { object.set(field.rawValue, device.topics) }
      case .subscription: if let subscription = device.subscription { object.set(field.rawValue, raw: subscription.json) }
      default: object.set(field.rawValue, ifKnown: device.text(field))
      }
    }
    return object.closed()
  }
}

extension Registration {
  fileprivate func text(_ field: ChangeField) -> [UInt8]? {
    switch field {
    case .app: app
    case .platform: Array(platform.word.utf8)
    case .token: platform == .webpush ? nil : token
    case .endpoint: subscription?.endpoint
    case .p256dh: (subscription?.publicKey).map(Base64URL.encode)
    case .auth: (subscription?.auth).map(Base64URL.encode)
    case .applicationServerKey: keyID?.hexText
    case .installation: installation
    case .environment: environment?.name.map { Array($0.utf8) }
    case .sender: sender
    case .user: user
    case .name: name
    case .locale: locale
    case .timeZone: timeZone
    case .appVersion: appVersion
    case .kind: kind.map { Array($0.name.utf8) }
    case .activity: activity
    case .registeredAt: registeredAt.map(Timestamp.text)
    default: nil
    }
  }
}
