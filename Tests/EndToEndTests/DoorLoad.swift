import Foundation
import Synchronization
import TestSupport

/// Senders at a gateway, each with one request at a time. A request without 200 or 202 is repeated unchanged until it has one.
final class DoorLoad: Sendable {
  /// A kind of requests, by number.
  struct Kind: Sendable {
    let path: String
    let body: @Sendable (Int) -> String

    /// A message to the device of the number.
    static let sends = Kind(path: "/fcm/send") { #"{"to":"\#(token($0))","data":{"n":"\#($0)"}}"# }
    /// The first device has received the message of the number.
    static let receptions = Kind(path: "/v1/apps/\(Site.app)/acks") {
      #"{"op":"received","token":"\#(token(1))","message_id":"\#($0)"}"#
    }
  }

  private struct Counts {
    var answered: [Int] = []
    /// By their status; 0 for no answer.
    var others: [Int: Int] = [:]
    /// The number of 503 answers without `Retry-After`.
    var silent = 0
  }

  private let counts = Mutex(Counts())
  private let next = Atomic<Int>(0)
  private let isOver = Atomic<Bool>(false)
  private let senders = DispatchGroup()

  /// - Parameter ports: the gateways; each attempt uses the next one.
  init(_ kind: Kind = .sends, ports: [UInt16], key: String, senders count: Int = 8) {
    for _ in 0..<count {
      senders.enter()
      Thread.detachNewThread { [self] in
        while !isOver.load(ordering: .relaxed) { send(kind, next.add(1, ordering: .relaxed).oldValue, ports, key) }
        senders.leave()
      }
    }
  }

  /// Requests answered with 200 or 202 so far.
  var answered: Int { counts.withLock(\.answered.count) }

  /// How often another status came, or no answer (0).
  var others: [Int: Int] { counts.withLock(\.others) }

  /// The number of 503 answers without a time to come again.
  var silent: Int { counts.withLock(\.silent) }

  /// Starts no more requests, and finishes the begun ones.
  /// - Returns: the numbers of all requests.
  func end() -> [Int] {
    isOver.store(true, ordering: .relaxed)
    senders.wait()
    return counts.withLock(\.answered)
  }

  private func send(_ kind: Kind, _ number: Int, _ ports: [UInt16], _ key: String) {
    let headers = ["Authorization": "key=\(key)", "Content-Type": "application/json", "Idempotency-Key": "request \(number)"]
    for attempt in 0..<3_000 {
      let answer = HTTPProbe(port: ports[(number + attempt) % ports.count]).ask(
        kind.path, method: "POST", headers: headers, body: kind.body(number), seconds: 30)
      let isTaken = counts.withLock { counts in
        if let answer, [200, 202].contains(answer.status), !answer.body.contains("error") {
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
