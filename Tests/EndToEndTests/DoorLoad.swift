import Foundation
import Synchronization
import TestSupport

/// Old senders at a gateway, each with one request at a time: what isn't answered with 200 is sent again, as it was, until it is.
final class DoorLoad: Sendable {
  private struct Counts {
    var answered: [Int] = []
    /// By their status; 0 for none.
    var others: [Int: Int] = [:]
    /// Of those that had one of 503 without `Retry-After`.
    var silent = 0
  }

  private let counts = Mutex(Counts())
  private let next = Atomic<Int>(0)
  private let isOver = Atomic<Bool>(false)
  private let senders = DispatchGroup()

  /// - Parameter ports: of gateways; each attempt goes to the next one.
  init(ports: [UInt16], key: String, senders count: Int = 8) {
    for _ in 0..<count {
      senders.enter()
      Thread.detachNewThread { [self] in
        while !isOver.load(ordering: .relaxed) { send(next.add(1, ordering: .relaxed).oldValue, ports, key) }
        senders.leave()
      }
    }
  }

  /// Requests answered with 200 so far.
  var answered: Int { counts.withLock(\.answered.count) }

  /// How often another status came, or none (0).
  var others: [Int: Int] { counts.withLock(\.others) }

  /// Answers of 503 that didn't say when to come again.
  var silent: Int { counts.withLock(\.silent) }

  /// Nothing new is sent from now on; what was begun goes on until it is answered.
  /// - Returns: the devices that were sent to.
  func end() -> [String] {
    isOver.store(true, ordering: .relaxed)
    senders.wait()
    return counts.withLock(\.answered).map(token)
  }

  private func send(_ number: Int, _ ports: [UInt16], _ key: String) {
    let headers = ["Authorization": "key=\(key)", "Content-Type": "application/json", "Idempotency-Key": "request \(number)"]
    for attempt in 0..<3_000 {
      let answer = HTTPProbe(port: ports[(number + attempt) % ports.count]).ask(
        "/fcm/send", method: "POST", headers: headers, body: #"{"to":"\#(token(number))","data":{"n":"\#(number)"}}"#,
        seconds: 30)
      let isTaken = counts.withLock { counts in
        if let answer, answer.status == 200, !answer.body.contains("error") {
          counts.answered.append(number)
          return true
        }
        counts.others[answer?.status ?? 0, default: 0] += 1
        if answer?.status == 503, answer?.headers["retry-after"] == nil { counts.silent += 1 }
        return false
      }
      if isTaken { return }
      usleep(20_000)
    }
  }
}
