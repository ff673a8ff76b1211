import Broker

extension TraceSettings {
  /// - Returns: nil for `keep: "none"`.
  static func read(_ reader: ConfigurationReader) -> TraceSettings? {
    let megabytes = reader.number("megabytes")
    let perSecond = reader.number("perSecond")
    return reader.time("keep").map { TraceSettings(keep: $0 / 1_000, megabytes: megabytes, perSecond: perSecond) }
  }
}
