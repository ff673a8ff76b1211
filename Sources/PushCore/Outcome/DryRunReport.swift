/// The translation losses that the result of a dry run adds, by platform. A platform has none if no target is on it, or if the
/// request can't be translated for it.
public typealias DryRunReport = [Platform: LossReport]

extension DryRunReport {
  /// `{"apns":[…],"fcm":[…]}`, with the entries of each ``LossReport``. Leaves out platforms without a report.
  var json: [UInt8] {
    JSONObject(Platform.allCases.map { ($0.word, JSONOptional(self[$0].map { JSONRaw($0.json) })) }).line
  }
}
