import Foundation
import PushCore
import Worker

/// What `send` says of each request, and at its end.
final class SendReport {
  enum Prints { case nothing, ids, outcomes }

  let prints: Prints
  private let asJSON: Bool
  private(set) var sent = 0
  /// Requests whose outcome is that each device was reached, that one wasn't, or that didn't come.
  private var delivered = 0
  private var failed = 0
  private var unknown = 0
  private var lastID = ""

  init(asJSON: Bool, prints: Prints) {
    self.asJSON = asJSON
    self.prints = prints
  }

  func confirmed(_ request: RequestFiles.Request) {
    sent += 1
    lastID = String(printing: request.id)
    guard prints == .ids else { return }
    guard asJSON else { return Terminal.print(request.id) }
    var line = JSONObjectWriter()
    line.set("message_id", request.id)
    line.set("place", request.place)
    Terminal.print(line.closed())
  }

  /// - Parameter body: a result's (docs/schema/result.schema.json), or that of a topic.
  func outcome(_ body: [UInt8], _ id: [UInt8], _ place: String) {
    guard let result = try? JSONSerialization.jsonObject(with: Data(body)) as? [String: Any] else { return unknown(id, place) }
    let (success, failure) = (result["success"] as? Int ?? 0, result["failure"] as? Int ?? 0)
    if failure > 0 { failed += 1 } else { delivered += 1 }
    guard !asJSON else { return Terminal.print(body) }
    let reasons = (result["results"] as? [[String: Any]] ?? []).enumerated().compactMap { index, target -> String? in
      guard let error = target["error"] as? String else { return nil }
      let reason = (target["reason"] as? String).map { ": \($0)" } ?? ""
      return (success + failure > 1 ? "target \(index + 1): " : "") + (error + reason).printable
    }
    var words = success > 0 || failure == 0 ? "delivered to \(success)" : "failed"
    if success > 0, failure > 0 { words += ", failed for \(failure)" }
    Terminal.print(
      "\(String(printing: id))  \(place): \(words)\(reasons.isEmpty ? "" : ": " + reasons.joined(separator: "; "))")
  }

  func unknown(_ id: [UInt8], _ place: String) {
    unknown += 1
    guard asJSON else { return Terminal.print("\(String(printing: id))  \(place): unknown, no outcome came") }
    var line = JSONObjectWriter()
    line.set("message_id", id)
    line.set("outcome", "unknown")
    Terminal.print(line.closed())
  }

  /// - Parameter refused: lines that are no requests, and were not sent.
  func end(refused: Int) throws(CommandFailure) {
    var figures = [("sent", sent), ("refused", refused)]
    if prints == .outcomes { figures += [("delivered", delivered), ("failed", failed), ("unknown", unknown)] }
    if asJSON {
      var line = JSONObjectWriter()
      for (name, figure) in figures { line.set(name, Int64(figure)) }
      Terminal.print(line.closed())
    } else {
      let words = figures.enumerated().filter { $0.offset == 0 || $0.element.1 > 0 }.map { "\($0.element.1) \($0.element.0)" }
      Terminal.say("pushfleet: \(words.joined(separator: ", "))\(sent == 1 && prints == .nothing ? " (\(lastID))" : "")")
    }
    if refused > 0 { throw CommandFailure(.badInput, "\(refused) of the requests are refused") }
    if unknown > 0 { throw CommandFailure(.unavailable, "of \(unknown) requests it is not known what became") }
    if failed > 0 { throw CommandFailure(.badInput, "\(failed) of the requests did not reach every device") }
  }
}
