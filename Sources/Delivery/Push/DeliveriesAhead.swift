import AMQP
import Broker
import Wire

/// Deliveries that were read ahead, before there was room for them, to reach other applications' deliveries behind them. They
/// are packed, at about two hundred bytes plus the body each, in a line for each application and lane. They begin when there is
/// room, or stay unacknowledged for the broker to deliver again.
package struct DeliveriesAhead {
  struct Line: Hashable {
    /// -1 if the application is unknown.
    var app: Int
    var queue: WorkQueue
  }

  /// The arrival of a delivery: unix milliseconds, and a number in the order of arrival.
  struct Moment {
    var at: Int64
    var number: Int64
  }

  struct Taken {
    let delivery: PackedDelivery
    let moment: Moment
  }

  private var lines: [Line: Ring<Taken>] = [:]
  /// Lines that are not empty, by lane.
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

  /// The number of lines compared for the oldest delivery. With more lines the choice is approximate.
  private static let mostSought = 64

  /// Takes the oldest delivery that may begin. Acknowledgements in order cost the broker least.
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

  /// Removes lines and calls `body` with each of their deliveries.
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
