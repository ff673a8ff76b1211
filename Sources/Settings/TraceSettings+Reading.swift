import Broker

extension TraceSettings {
  /// - Returns: nil where nothing is to be kept.
  static func read(_ reader: ConfigurationReader) throws(ConfigurationError) -> TraceSettings? {
    let text = try reader.string("keep") ?? "1d"
    let megabytes = try reader.integer("megabytes", in: 8...1_000_000) ?? 256
    let perSecond = try reader.integer("perSecond", in: 1...100_000) ?? 500
    if text == "none" { return nil }
    guard let last = text.last, let factor: Int64 = ["s": 1, "m": 60, "h": 3_600, "d": 86_400][last],
      let count = Int64(text.dropLast()), count > 0, count <= longest / factor
    else {
      throw reader.error(
        "keep", "is \(Shown.value(text)): a number with s, m, h or d, from 1s to 365d, such as 1d; or \"none\"")
    }
    return TraceSettings(keep: count * factor, megabytes: megabytes, perSecond: perSecond)
  }

  /// Seconds.
  private static let longest: Int64 = 365 * 86_400
}
