import AMQP
import Broker
import Wire

/// Deliveries of the lanes that were taken before there is room for them, so that those of other applications behind them come through.
///
/// Kept packed, at some two hundred bytes and the body each, a line for each application and lane. They are begun as room comes up, or left to
/// the broker unacknowledged.
package struct DeliveriesAhead {
  /// Whose deliveries, and of which lane.
  struct Line: Hashable {
    /// -1 for those of no application.
    var app: Int
    var queue: WorkQueue
  }

  /// When a delivery came: in unix milliseconds, and its place in the order of those that have come.
  struct Moment {
    var at: Int64
    var number: Int64
  }

  struct Taken {
    let delivery: PackedDelivery
    let moment: Moment
  }

  private var lines: [Line: Ring<Taken>] = [:]
  /// Lines that are not empty, those of the high lane apart.
  private var turns = (high: Ring<Line>(), normal: Ring<Line>())
  package private(set) var count = 0

  var isEmpty: Bool { count == 0 }
  var lineCount: Int { lines.count }
  func contains(_ line: Line) -> Bool { lines[line] != nil }

  mutating func append(_ delivery: Taken, _ line: Line) {
    if lines[line] == nil { addTurn(line) }
    lines[line, default: Ring()].append(delivery)
    count += 1
  }

  private mutating func addTurn(_ line: Line) {
    if line.queue.isHigh { turns.high.append(line) } else { turns.normal.append(line) }
  }

  /// Lines of which the oldest is sought at a time: with more applications at once, what comes first is nearly so.
  private static let mostSought = 64

  /// Takes the oldest of the deliveries that may begin, of the high lane or of the normal one: acknowledged in their order, they cost the broker
  /// least.
  mutating func takeFirst(high isHigh: Bool, _ mayBegin: (Line) -> Bool) -> (taken: Taken, queue: WorkQueue)? {
    var oldest: (line: Line, tag: UInt64)?
    for _ in 0..<min(isHigh ? turns.high.count : turns.normal.count, Self.mostSought) {
      guard let line = isHigh ? turns.high.popFirst() : turns.normal.popFirst() else { break }
      addTurn(line)
      guard let tag = lines[line]?.first?.delivery.token.tag, tag < oldest?.tag ?? .max, mayBegin(line) else { continue }
      oldest = (line, tag)
    }
    guard let line = oldest?.line, let taken = lines[line]?.popFirst() else { return nil }
    count -= 1
    if lines[line]?.isEmpty == true {
      lines[line] = nil
      if isHigh { turns.high.removeAll { $0 == line } } else { turns.normal.removeAll { $0 == line } }
    }
    return (taken, line.queue)
  }

  /// Forgets lines; `body` hears of each delivery.
  mutating func removeAll(where isRemoved: (Line) -> Bool, _ body: (PackedDelivery) -> Void) {
    for line in lines.keys where isRemoved(line) {
      while let taken = lines[line]?.popFirst() {
        count -= 1
        body(taken.delivery)
      }
      lines[line] = nil
    }
    turns.high.removeAll { lines[$0] == nil }
    turns.normal.removeAll { lines[$0] == nil }
  }
}
