import DeviceRegistry
import Foundation
import Logging
import PushCore
import Reactor
import Settings

@testable import Gateway
@testable import StatusHTTP

/// Whatever is asked of the HTTP door while neither broker nor registry can be reached: it is answered at once, with a status that the interface
/// has and a body that can be read. Whatever a worker says of a request, the sender gets an answer of that kind as well.
enum DoorFuzz {
  private static let places: [(method: String, target: String)] = [
    ("POST", "/gcm/send"), ("POST", "/fcm/send"), ("POST", "/v1/projects/p/messages:send"), ("POST", "/gcm/notification"),
    ("GET", "/fcm/notification"), ("GET", "/iid/info/t"), ("POST", "/iid/v1/t/rel/topics/n"), ("POST", "/iid/v1:batchAdd"),
    ("POST", "/iid/v1:batchRemove"), ("POST", "/iid/v1:batchImport"), ("PUT", "/v1/apps/a/installations/i"),
    ("DELETE", "/v1/apps/a/installations/i"), ("PUT", "/v1/apps/a/installations/i/user"),
    ("PUT", "/v1/apps/a/installations/i/groups/g"), ("PUT", "/v1/apps/a/installations/i/topics/t"),
    ("PUT", "/v1/apps/a/installations/i/badge"), ("POST", "/v1/apps/a/installations/i/acks"), ("POST", "/v1/apps/a/acks"),
    ("POST", "/v1/apps/a/messages"), ("GET", "/v1/apps/a/messages/m"), ("POST", "/api/push"), ("GET", "/api/stat/app"),
    ("POST", "/console/login"), ("POST", "/console/logout"), ("GET", "/console/session"), ("GET", "/v1/fleet/devices"),
    ("POST", "/v1/fleet/apps/a/pause"),
  ]
  private static let types = [
    "application/json", "application/x-www-form-urlencoded", "application/json; charset=utf-8", "application/x-ndjson",
  ]
  private static let key = GatewayKey(
    id: Array("k".utf8), hash: [], apps: [Array("a".utf8)], rights: Set(KeyRight.allCases), createdAt: 0)
  private static let desk = Result { try Desk() }

  static func run(_ input: inout Input) throws(Violation) {
    let choice = Int(input.byte())
    let options = Int(input.byte())
    if choice == 0 { return try checkResult(input.remainder(), options) }
    var (method, target) = ("POST", Array("/".utf8))
    if choice <= places.count {
      method = places[choice - 1].method
      target = Array(places[choice - 1].target.utf8)
      if options & 4 != 0 { target += Array("?".utf8) + input.counted() }
    } else {
      method = ["GET", "PUT", "DELETE", "POST"][options & 3]
      target += input.counted()
    }
    var request = HTTPRequest(method: method, target: target)
    if options & 8 != 0 { request.headers["idempotency-key"] = input.counted() }
    if options & 16 != 0 { request.headers["project_id"] = input.counted() }
    if options & 64 != 0 { request.headers["cookie"] = input.counted() }
    request.headers["content-type"] = Array(types[options & 3].utf8)
    request.body = input.remainder()
    try ask(request, isBackend: options & 32 == 0)
  }

  private static func ask(_ request: HTTPRequest, isBackend: Bool) throws(Violation) {
    guard let desk = try? Self.desk.get() else { throw Violation(description: "no gateway") }
    desk.lock.lock()
    defer { desk.lock.unlock() }
    let reply = HTTPReply(target: request.target)
    if let call = HTTPCall(request, reply, desk.parts), let route = Routes.route(call),
      route.methods.contains(request.method)
    {
      do throws(Fault) {
        switch route.work {
        case .open(let work): work(call)
        case .keyed(_, let work): try work(call, key)
        case .console(_, let work):
          // It waits for the broker.
          guard call.path.last != Array("status".utf8) else { return }
          _ = call.session
          try work(call, key)
        case .login(let work):
          _ = call.loginKey
          try work(call, key)
        case .installation(_, let work):
          call.isBackend = isBackend
          try work(call)
        case .account(let work):
          _ = try Assertion(request.body)
          try work(call, key)
        }
      } catch { call.refuse(error) }
      guard let answer = reply.answer else { throw Violation(description: "no answer") }
      try check(answer)
    }
  }

  private static func checkResult(_ body: [UInt8], _ options: Int) throws(Violation) {
    let shapes: [GCMAnswer.Shape] = [.multicast(2), .audience, .group, .form]
    let id = Array("m".utf8)
    try check(GCMAnswer(shape: shapes[options & 3], messageID: id).answer(.result(body)))
    try check(V1Answer(project: id, messageID: id, isDryRun: options & 4 != 0).answer(.result(body)))
  }

  private static func check(_ answer: HTTPAnswer) throws(Violation) {
    let statuses = [200, 202, 400, 401, 403, 404, 405, 409, 413, 415, 422, 429, 500, 503]
    try require(statuses.contains(answer.status), "status \(answer.status)")
    try require(answer.status != 503 || answer.headers["Retry-After"] != nil, "503, and not when to come again")
    for (name, value) in answer.headers {
      try require((name + value).utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }, "a header that is none: \(name)")
    }
    if answer.contentType.hasPrefix("application/json") {
      try require((try? JSONDocument(answer.body, limits: JSONLimits(bytes: 8 << 20))) != nil, "an answer that is no JSON")
    } else {
      try require(String(validating: answer.body, as: UTF8.self) != nil, "an answer that is no text")
    }
  }

  /// The door's places in front of a registry that is closed and a broker that was never called. For one thread at a time, which has the lock.
  private final class Desk: @unchecked Sendable {
    let lock = NSLock()
    let loop: EventLoop
    let context: GatewayContext
    let parts: GatewayParts

    init() throws {
      let file = URL(filePath: "/dev/shm/fuzz-\(UUID().uuidString).json5")
      defer { try? FileManager.default.removeItem(at: file) }
      let text = """
        { broker: "amqp://guest:guest@127.0.0.1:1/", registry: "sqlite:/dev/shm/fuzz-none/registry.db", log: "error",
          gateway: { http: { listen: "127.0.0.1:1", wait: 0 } },
          apps: { a: { apns: { key: "k", keyID: "ABC123DEFG", teamID: "DEF123GHIJ", topic: "a" } } } }
        """
      try Data(text.utf8).write(to: file)
      let configuration = try Configuration.load(path: file.path, environment: [:])
      loop = try EventLoop()
      context = try GatewayContext(
        configuration, version: "1", letters: NoLetters(),
        explain: { _, _, _ in (false, Array("[]".utf8)) }, loop: loop,
        log: Log(level: .error, format: configuration.logFormat))
      guard let registry = context.registry, let http = configuration.gateway?.http else { throw CancellationError() }
      registry.close()
      parts = try GatewayParts(context, http)
    }
  }
}

/// Ends each order at once.
private struct NoLetters: LetterWorker {
  func begin(
    _ order: LetterOrder, progress: @escaping @Sendable (Int, Int) -> Void, then: @escaping @Sendable (LetterOutcome) -> Void
  ) -> @Sendable () -> Void {
    then(LetterOutcome())
    return {}
  }

  func trace(_ order: TraceOrder, then: @escaping @Sendable (LetterOutcome) -> Void) {
    then(LetterOutcome())
  }
}
