import AMQP
import Wire

/// Deliveries of the lanes that were taken before there is room for them, so that those of other applications behind them come through.
///
/// Kept packed, at some two hundred bytes and the body each, in the order of their lane for each application; applications take turns. They are
/// begun as room comes up, or left to the broker unacknowledged.
struct DeliveriesAhead {
  /// Whose deliveries, and of which lane.
  struct Line: Hashable {
    /// -1 for those of no application.
    var app: Int
    var queue: WorkQueue
  }

  private var lines: [Line: Ring<PackedDelivery>] = [:]
  /// Lines that are not empty, those of the high lane apart.
  private var turns = (high: Ring<Line>(), normal: Ring<Line>())
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }
  func contains(_ line: Line) -> Bool { lines[line] != nil }

  mutating func append(_ delivery: PackedDelivery, _ line: Line) {
    if lines[line] == nil { addTurn(line) }
    lines[line, default: Ring()].append(delivery)
    count += 1
  }

  private mutating func addTurn(_ line: Line) {
    if line.queue.isHigh { turns.high.append(line) } else { turns.normal.append(line) }
  }

  /// Whether there are deliveries of the high lane, and of the normal one: lines that may have a turn.
  var lineCounts: (high: Int, normal: Int) { (turns.high.count, turns.normal.count) }

  /// The line whose turn it is goes to the end; its first delivery is taken unless it has to wait.
  mutating func takeTurn(high isHigh: Bool, _ mayBegin: (Line) -> Bool) -> (delivery: PackedDelivery, queue: WorkQueue)? {
    guard let line = isHigh ? turns.high.popFirst() : turns.normal.popFirst() else { return nil }
    guard mayBegin(line), let delivery = lines[line]?.popFirst() else {
      addTurn(line)
      return nil
    }
    count -= 1
    if lines[line]?.isEmpty == true { lines[line] = nil } else { addTurn(line) }
    return (delivery, line.queue)
  }

  /// Forgets lines; `body` hears of each delivery.
  mutating func removeAll(where isRemoved: (Line) -> Bool, _ body: (PackedDelivery) -> Void) {
    for line in lines.keys where isRemoved(line) {
      while let delivery = lines[line]?.popFirst() {
        count -= 1
        body(delivery)
      }
      lines[line] = nil
    }
    turns.high.removeAll { lines[$0] == nil }
    turns.normal.removeAll { lines[$0] == nil }
  }
}
