/// What became of a shard's trace and spans, which nothing waits for.
package struct ObservabilityCounts: Sendable, Equatable {
  /// Requests whose lines the trace's stream has confirmed.
  package var traced = 0
  /// Requests that were not noted: more than `trace.perSecond`, or than there is room for.
  package var untracedByRate = 0
  /// Requests whose lines no stream has confirmed.
  package var untracedByBroker = 0
  package var untraced: Int { untracedByRate + untracedByBroker }
  /// Spans that the collector has taken.
  package var spansExported = 0
  /// Spans for which there was no room.
  package var spansBeyondBuffer = 0
  /// Spans that the collector didn't take.
  package var spansNotTaken = 0

  package init() {}

  package static func += (a: inout ObservabilityCounts, b: ObservabilityCounts) {
    for part in parts { a[keyPath: part] += b[keyPath: part] }
  }

  private static var parts: [WritableKeyPath<ObservabilityCounts, Int>] {
    [\.traced, \.untracedByRate, \.untracedByBroker, \.spansExported, \.spansBeyondBuffer, \.spansNotTaken]
  }
}
