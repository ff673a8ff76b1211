/// Counts a shard's trace lines and spans.
package struct ObservabilityCounts: Sendable, Equatable {
  package var traced = 0
  /// Requests without trace lines because of `trace.perSecond` or a full buffer.
  package var untracedByRate = 0
  /// Requests whose trace lines the broker has not confirmed.
  package var untracedByBroker = 0
  package var untraced: Int { untracedByRate + untracedByBroker }
  package var spansExported = 0
  package var spansBeyondBuffer = 0
  /// Spans that the collector did not accept.
  package var spansNotTaken = 0

  package init() {}

  package static func += (a: inout ObservabilityCounts, b: ObservabilityCounts) {
    for part in parts { a[keyPath: part] += b[keyPath: part] }
  }

  private static var parts: [WritableKeyPath<ObservabilityCounts, Int>] {
    [\.traced, \.untracedByRate, \.untracedByBroker, \.spansExported, \.spansBeyondBuffer, \.spansNotTaken]
  }
}
