import Broker
import DeviceRegistry
import Foundation
import Logging
import Reactor
import Settings
import TestSupport
import Testing
import Wire

@testable import Gateway

@Suite("Orders on dead letters")
final class LetterJobsTests {
  private let folder = FileManager.default.temporaryDirectory.appending(path: "letters-\(UUID().uuidString.prefix(8))")

  deinit { try? FileManager.default.removeItem(at: folder) }

  /// A registry that refuses the first calls.
  private final class Door: RegistryHost, RegistryDoor {
    let store: DeviceStore
    let time: Turn
    var refusals: Int
    weak var handler: (any RegistryHandler)?
    let waiting = 0

    init(_ store: DeviceStore, _ time: Turn, refusals: Int) { (self.store, self.time, self.refusals) = (store, time, refusals) }

    func openRegistry(
      _ location: RegistryLocation, _ limits: RegistryLimits, _ handler: any RegistryHandler
    ) -> any RegistryDoor {
      self.handler = handler
      return self
    }

    func submit(_ request: RegistryRequest, tag: Int) throws(RegistryError) {
      refusals -= 1
      guard refusals < 0 else { throw .unavailable(.down, "locked") }
      handler?.registryAnswered(tag, .success(try request.answer(store, now: 0)))
    }

    func withdrawChanges() {}
    func close() {}
  }

  /// Ends each order at once.
  private struct Worker: LetterWorker {
    func begin(
      _ order: LetterOrder, progress: @escaping @Sendable (Int, Int) -> Void, then: @escaping @Sendable (LetterOutcome) -> Void
    ) -> @Sendable () -> Void {
      then(LetterOutcome(count: 5))
      return {}
    }

    func trace(_ order: TraceOrder, then: @escaping @Sendable (LetterOutcome) -> Void) {}
  }

  @Test("are recorded when they begin, then when they end, even if the registry refuses the first record")
  func order() throws {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let file = folder.appending(path: "pushfleet.json5").path
    let text = """
      { broker: "amqp://guest:guest@127.0.0.1:1/", gateway: { http: { listen: "127.0.0.1:1" } },
        apps: { a: { apns: { key: "k", keyID: "ABC123DEFG", teamID: "DEF123GHIJ", topic: "a" } } } }
      """
    try Data(text.utf8).write(to: URL(filePath: file))
    let loop = try EventLoop(), log = Log(level: .error)
    let context = try GatewayContext(
      try Configuration.load(path: file, environment: [:]), version: "1", letters: Worker(),
      explain: { _, _, _ in (false, []) }, loop: loop, log: log)
    let store = try openRegistry(.sqlite(path: folder.appending(path: "registry.db").path))
    let door = Door(store, loop.time, refusals: 1)
    let registry = try RegistryClient(.sqlite(path: "/dev/null"), limits: RegistryLimits(), host: door, log: log)
    let jobs = LetterJobs(registry, context)
    let removal = FleetOperation.Removal("dead drop", app: nil, queue: "push.dead", count: nil)
    try jobs.add(
      LetterOrder(action: .drop, queue: .dead, filter: LetterFilter()),
      FleetOperation(.messages(removal), by: Array("ada".utf8), from: []))
    #expect(loop.run { jobs.isIdle } && jobs.jobs.first?.state == .done)
    let events = try store.auditEvents(of: nil, before: .max, limit: 10).sorted { $0.number < $1.number }
    #expect(events.map { String(decoding: $0.action, as: UTF8.self) } == ["dead drop begun", "dead drop"])
  }
}
