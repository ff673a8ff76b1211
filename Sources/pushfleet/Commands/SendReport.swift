import Foundation
import PushCore
import Settings

final class SendReport {
  enum Prints { case nothing, ids, outcomes }

  struct Awaited {
    let place: String
    /// The request's application; nil if it names none.
    let app: [UInt8]?
    /// The user that the request is sent to; nil for other targets.
    let user: [UInt8]?
  }

  let prints: Prints
  private let options: Options
  private(set) var sent = 0
  /// Requests that reached every device, that missed one or all, and that got no outcome.
  private var delivered = 0
  private var failed = 0
  private var unknown = 0
  private var lastID = ""
  private let configuration: Configuration
  /// The application of all requests; nil if each names its own.
  private let app: [UInt8]?

  init(_ configuration: Configuration, _ options: Options, app: [UInt8]?) {
    self.configuration = configuration
    self.options = options
    self.app = app
    prints = options.has("wait") ? .outcomes : options.has("ids") ? .ids : .nothing
  }

  func awaited(_ request: RequestFiles.Request) -> Awaited {
    var user: [UInt8]?
    let fields = try? JSONSerialization.jsonObject(with: Data(request.body)) as? [String: Any]
    if let to = fields?["to"] as? String, case .success(.user(let name)) = Target.classify(Array(to.utf8)) { user = name }
    return Awaited(place: request.place, app: app ?? application(of: request.body), user: user)
  }

  private func application(of body: [UInt8]) -> [UInt8]? {
    guard let package = ExplainQuestion.package(in: body, configuration.limits.json) else { return nil }
    return configuration.apps.first { $0.packages.contains(String(decoding: package, as: UTF8.self)) }.map { Array($0.id.utf8) }
  }

  func confirmed(_ request: RequestFiles.Request) {
    sent += 1
    lastID = String(printing: request.id)
    guard prints == .ids else { return }
    options.print(["message_id": request.id, "place": request.place], text: lastID)
  }

  /// - Parameter body: a result (docs/schema/result.schema.json), for one request or a topic.
  func outcome(_ body: [UInt8], _ id: [UInt8], _ awaited: Awaited) {
    let place = awaited.place
    guard let result = try? JSONSerialization.jsonObject(with: Data(body)) as? [String: Any] else { return unknown(id, place) }
    func count(_ key: String) -> Int { min(max(result[key] as? Int ?? 0, 0), 1 << 32) }
    let (success, failure) = (count("success"), count("failure"))
    if failure > 0 || success == 0 { failed += 1 } else { delivered += 1 }
    guard !options.asJSON else { return Terminal.print(body) }
    let reasons = (result["results"] as? [[String: Any]] ?? []).enumerated().compactMap { index, target -> String? in
      guard let error = target["error"] as? String else { return nil }
      let reason = (target["reason"] as? String).map { ": \($0)" } ?? ""
      return (success + failure > 1 ? "target \(index + 1): " : "") + (error + reason).printable
    }
    let why =
      reasons
      + (result["failures"] as? [[String: Any]] ?? []).compactMap { failure in
        guard let error = failure["error"] as? String, let count = failure["count"] as? Int else { return nil }
        return "\(count) \(error)".printable
      }
    var words =
      success > 0 ? "accepted\(provider(result, awaited.app)) for \(success)" : failure > 0 ? "failed" : "reached no device"
    if success > 0, failure > 0 { words += ", failed for \(failure)" }
    if success + failure == 0, let user = awaited.user, let app = awaited.app,
      let reason = DeviceHistory.unreachable(user: user, app: app, options)
    {
      words += ": " + reason
    }
    Terminal.print("\(String(printing: id))  \(place): \(words)\(why.isEmpty ? "" : ": " + why.joined(separator: "; "))")
  }

  /// The provider that gave an id: FCM's name, a UUID of APNs, or the digits that name a push service's message.
  private static func provider(_ id: String) -> Platform {
    id.hasPrefix("projects/") ? .fcm : id.count == 16 && id.allSatisfy(\.isHexDigit) ? .webpush : .apns
  }

  /// The provider that accepted the pushes: by the ids of a list, otherwise by the application's credentials. Empty if unknown.
  private func provider(_ result: [String: Any], _ app: [UInt8]?) -> String {
    let ids = (result["results"] as? [[String: Any]] ?? []).compactMap { $0["message_id"] as? String }
    guard ids.isEmpty else {
      let providers = Set(ids.map(Self.provider))
      return " by " + Platform.allCases.filter(providers.contains).map(\.label).joined(separator: " and ")
    }
    let sets = configuration.apps.filter { app == nil || Array($0.id.utf8) == app }.flatMap(\.sets).map(\.set)
    let possible = Platform.allCases.filter { platform in sets.contains { $0.reaches(platform) } }
    return possible.count == 1 ? " by \(possible[0].label)" : ""
  }

  func unknown(_ id: [UInt8], _ place: String) {
    unknown += 1
    options.print(
      ["message_id": id, "outcome": "unknown"], text: "\(String(printing: id))  \(place): unknown, no outcome came")
  }

  /// - Parameters:
  ///   - refused: number of lines that are not requests and were not sent.
  ///   - problem: why not all files were read to their end.
  func end(refused: Int, problem: CommandFailure?) throws(CommandFailure) {
    var figures = [("sent", sent), ("refused", refused)]
    if prints == .outcomes {
      figures += [(options.asJSON ? "delivered" : "accepted", delivered), ("failed", failed), ("unknown", unknown)]
    }
    if options.asJSON {
      Terminal.print(JSONObject(figures.map { ($0.0, $0.1) }))
    } else {
      let words = figures.enumerated().filter { $0.offset == 0 || $0.element.1 > 0 }.map { "\($0.element.1) \($0.element.0)" }
      Terminal.notice("\(words.joined(separator: ", "))\(sent == 1 && prints == .nothing ? " (\(lastID))" : "")")
    }
    if let problem { throw problem }
    if refused > 0 { throw CommandFailure(.badInput, "\(refused) of the requests are refused") }
    if unknown > 0 { throw CommandFailure(.unavailable, "the outcome of \(unknown) requests is unknown") }
    if failed > 0 { throw CommandFailure(.badInput, "\(failed) of the requests did not reach every device") }
  }
}
