/// What a dry run's result adds: what translation changed, for each platform that the request reaches.
public struct DryRunReport: Sendable, Equatable {
  private var reports: [LossReport?] = Array(repeating: nil, count: Platform.allCases.count)

  public init() {}

  /// Nil for a platform without a device among the targets, or for which the request can't be translated.
  public subscript(platform: Platform) -> LossReport? {
    get { reports[Int(platform.rawValue)] }
    set { reports[Int(platform.rawValue)] = newValue }
  }

  /// `{"apns":[…],"fcm":[…]}` with the entries of ``LossReport/append(to:)``, platforms without a report left out.
  func append(to body: inout [UInt8]) {
    body.append(0x7B)
    for platform in Platform.allCases {
      guard let report = self[platform] else { continue }
      body.appendMemberSeparator()
      body.append(contentsOf: (platform == .apns ? #""apns":"# : #""fcm":"#).utf8)
      report.append(to: &body)
    }
    body.append(0x7D)
  }
}
