import Broker
import DeviceRegistry
import PushCore
import StatusHTTP

/// `/v1/fleet/dead`, `/v1/fleet/apps/<app>/held` and `/v1/fleet/jobs`: the operations of `pushfleet dead`, `held`,
/// `apps discard` and `lanes discard`. An operation that changes a queue is a job: the call answers with its number, and the job's progress can be asked for.
enum LetterRoutes {
  private static let mostShown = 200
  private static let usuallyShown = 50

  static var table: Route.Table {
    [
      ("v1/fleet/dead", .view(look)), ("v1/fleet/dead/replay", .operate(begin)), ("v1/fleet/dead/drop", .operate(begin)),
      // A look counts as a return of each request.
      ("v1/fleet/apps/*/held", Route(["GET"], .own, .console([.operate], look))),
      ("v1/fleet/apps/*/held/drop", .operate(begin)), ("v1/fleet/apps/*/discard", .operate(discard)),
      ("v1/fleet/lanes/*/discard", .operate(discard)),
      ("v1/fleet/jobs", .view(list)), ("v1/fleet/jobs/*", .view(show)), ("v1/fleet/jobs/*/stop", .operate(stop)),
    ]
  }

  /// The queue that the path names.
  private static func queue(_ call: HTTPCall) -> LetterQueue {
    let words = call.path.map { String(decoding: $0, as: UTF8.self) }
    return switch words[2] {
    case "apps": .held(words[3])
    case "lanes": .lane(words[3])
    default: .dead
    }
  }

  // MARK: looks

  private static func look(_ call: HTTPCall, _ key: GatewayKey) throws(Fault) {
    let queue = queue(call)
    let filter = try LetterBody.filter(call)
    try check(call, filter.app, queue, key)
    let withContent = call.has("content")
    guard !withContent || key.rights.contains(.operate) else { throw .noRight([.operate]) }
    let order = LetterOrder(
      action: .look(shown: min(filter.limit ?? Self.usuallyShown, Self.mostShown), withContent: withContent),
      queue: queue, filter: filter)
    try call.parts.letters.add(order, operation("look", order, call, key, nil), answer: call.answer)
  }

  /// - Throws: if the key isn't for the application, or for all of them if none is named.
  private static func check(_ call: HTTPCall, _ app: String?, _ queue: LetterQueue, _ key: GatewayKey) throws(Fault) {
    if let app = queue.heldApp {
      guard call.applications.has(Array(app.utf8), of: key) else { throw .foreignApp }
    } else if let app {
      // A letter may be of an application that is no longer configured, or of none (`-`).
      guard key.apps.contains(Array(app.utf8)) || call.applications.areAll(in: key.apps) else { throw .foreignApp }
    } else {
      guard call.applications.areAll(in: key.apps) else { throw .noApp }
    }
  }

  // MARK: changes

  /// Replays or drops messages.
  private static func begin(_ call: HTTPCall, _ key: GatewayKey) throws(Fault) {
    let queue = queue(call)
    let isReplay = call.path.last?.elementsEqual("replay".utf8) == true
    let body = try LetterBody(call.request.body, with: isReplay ? ["filter", "rate"] : ["filter"])
    try check(call, body.filter.app, queue, key)
    let order = LetterOrder(
      action: isReplay ? .replay(rate: body.rate.map(Double.init)) : .drop, queue: queue, filter: body.filter)
    try add(order, "\(queue == .dead ? "dead" : "held") \(isReplay ? "replay" : "drop")", call, key, body.reason)
  }

  /// Drops what waits in the queue of a paused application or lane. It must be paused now, and still when the job begins.
  private static func discard(_ call: HTTPCall, _ key: GatewayKey) throws(Fault) {
    let queue = queue(call)
    let subject: ControlSubject = queue.heldApp == nil ? .lane(call.path[3]) : .app(call.path[3])
    if case .lane(let name) = queue, !Topology.lanes.contains(name) { throw .noSuchPlace }
    let body = try LetterBody(call.request.body, with: [])
    try check(call, nil, queue, key)
    let order = LetterOrder(action: .drop, queue: queue, filter: body.filter)
    let (unknown, running) = ("the registry can't be used for now", subject.refusalOfDiscard)
    func ask(_ then: @escaping (Control.Mode?) -> Void) {
      call.parts.registry.call(.read { try $0.control(subject) }) { then((try? $0.get())?.mode(at: call.time.wallClock)) }
    }
    ask { mode in
      guard let mode else { return call.refuse(.unavailable(unknown)) }
      guard mode == .paused else { return call.refuse("InvalidParameters", running, status: 409) }
      var isFirst = true
      do throws(Fault) {
        try add(order, "discard", call, key, body.reason) { then in
          ask { mode in
            // A question that fails during the job doesn't end it.
            then(mode == .paused || mode == nil && !isFirst ? nil : mode == nil ? unknown : running)
            isFirst = false
          }
        }
      } catch { call.refuse(error) }
    }
  }

  private static func add(
    _ order: LetterOrder, _ name: String, _ call: HTTPCall, _ key: GatewayKey, _ reason: [UInt8]?,
    check: LetterJobs.Check? = nil
  ) throws(Fault) {
    let number = try call.parts.letters.add(order, operation(name, order, call, key, reason), check: check)
    call.answer(.json(202, ["job": number]))
  }

  private static func operation(
    _ name: String, _ order: LetterOrder, _ call: HTTPCall, _ key: GatewayKey, _ reason: [UInt8]?
  ) -> FleetOperation {
    let app = order.queue.heldApp ?? order.filter.app
    let rate: [(String, [UInt8])] =
      if case .replay(let rate?) = order.action { [("rate", Array("\(Int(rate))/s".utf8))] } else { [] }
    let removal = FleetOperation.Removal(
      name, app: app.map { Array($0.utf8) }, queue: order.queue.name(call.context.topology), count: nil,
      filter: order.filter.members + rate)
    return FleetOperation(.messages(removal), by: key.title, from: call.origin, because: reason)
  }

  // MARK: jobs

  /// A job is known to keys for its application, and to keys for all applications.
  private static func isKnown(_ job: LetterJobs.Job, _ call: HTTPCall, _ key: GatewayKey) -> Bool {
    guard !job.isLook, case .messages(let removal) = job.operation.action else { return false }
    return removal.app.map(key.apps.contains) == true || call.applications.areAll(in: key.apps)
  }

  private static func list(_ call: HTTPCall, _ key: GatewayKey) {
    let known = call.parts.letters.jobs.filter { isKnown($0, call, key) }.reversed()
    call.answer(.json(200, ["jobs": known.map(\.json)]))
  }

  private static func job(_ call: HTTPCall, _ key: GatewayKey) throws(Fault) -> LetterJobs.Job {
    let number = Int(String(decoding: call.path[3], as: UTF8.self))
    let job = call.parts.letters.jobs.first { $0.number == number && isKnown($0, call, key) }
    guard let job else { throw .noSuchPlace }
    return job
  }

  private static func show(_ call: HTTPCall, _ key: GatewayKey) throws(Fault) {
    call.answer(.json(200, try job(call, key).json))
  }

  private static func stop(_ call: HTTPCall, _ key: GatewayKey) throws(Fault) {
    let job = try job(call, key)
    let reason = try OperationBody(call.request.body, with: []).reason
    let order = FleetOperation(job.operation.action, by: key.title, from: call.origin, because: reason)
    guard call.parts.letters.stop(job.number, as: order) else {
      return call.refuse("InvalidParameters", "the job has ended", status: 409)
    }
    call.answer(.json(200, ["job": job.number]))
  }
}
