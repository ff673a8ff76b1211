import PushCore

extension JSONObjectWriter {
  /// With one decimal place; `null` where there is none.
  mutating func set(_ name: String, _ value: Double?) {
    set(name, raw: Array((value.map { "\(($0 * 10).rounded() / 10)" } ?? "null").utf8))
  }
}
