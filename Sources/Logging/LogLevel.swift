public enum LogLevel: String, CaseIterable, Comparable, Sendable {
  case debug, info, warning, error

  public static func < (a: LogLevel, b: LogLevel) -> Bool { a.rank < b.rank }
  private var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}

public enum LogFormat: String, CaseIterable, Sendable {
  case json, text
}
