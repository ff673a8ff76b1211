/// The translation losses that the result of a dry run adds, by platform.
public struct DryRunReport: Sendable, Equatable {
  private var reports: [LossReport?] = Array(repeating: nil, count: Platform.allCases.count)

  public init() {}

  /// Nil if no target is on the platform, or if the request can't be translated for it.
  public subscript(platform: Platform) -> LossReport? {
    get { reports[Int(platform.rawValue)] }
    set { reports[Int(platform.rawValue)] = newValue }
  }

  /// `{"apns":[…],"fcm":[…]}`, with the entries of each ``LossReport``. Leaves out platforms without a report.
  var json: [UInt8] {
    JSONObject(Platform.allCases.map { ($0.word, JSONOptional(self[$0].map { JSONRaw($0.json) })) }).line
  }
}
