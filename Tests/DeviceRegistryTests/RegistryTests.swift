import Glibc
import TestSupport
import Testing

@testable import DeviceRegistry
@testable import Reactor

/// Collects a registry's answers.
final class Recorder: RegistryHandler {
  var answers: [(tag: Int, answer: any Sendable)] = []
  var failures: [(tag: Int, error: RegistryError)] = []
  var conditions: [RegistryError?] = []

  func registryAnswered(_ tag: Int, _ result: Result<any Sendable, RegistryError>) {
    switch result {
    case .success(let answer): answers.append((tag, answer))
    case .failure(let error): failures.append((tag, error))
    }
  }
  func registryChanged(_ error: RegistryError?) { conditions.append(error) }
  var writes: [(kind: WriteKind, fault: RegistryError?)] = []
  func registryWritesChanged(_ kind: WriteKind, _ fault: RegistryError?) { writes.append((kind, fault)) }
  var settled: Int { answers.count + failures.count }
}

@Suite("The registry of a shard", .serialized)
struct RegistryTests {
  private let folder: TemporaryFolder
  private let path: String
  private let loop: EventLoop
  private let recorder = Recorder()

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path + "/registry.db"
    loop = try EventLoop()
  }

  private func options(statementTimeout: Int64 = 50) -> RegistryOptions {
    var options = RegistryOptions()
    options.store.statementTimeout = statementTimeout
    options.backoff = .init(base: 0.01, cap: 0.02)
    return options
  }

  private func open(_ options: RegistryOptions) throws -> Registry {
    try Registry(.sqlite(path: path), loop: loop, handler: recorder, options: options)
  }

  private static let survey = RegistryCall.read { try $0.survey(.topic([1]), app: TestRegistry.app) }.request

  private func registering(_ token: String, fence: Int64 = 0) -> RegistryRequest {
    .change(.register(Registration(app: TestRegistry.app, platform: .fcm, token: Array(token.utf8))), fence: fence)
  }

  @Test("Answers come in the order of the requests, each under its tag, changes in one transaction among them")
  func answers() throws {
    let registry = try open(options(statementTimeout: 5_000))
    for tag in 0..<500 { try registry.submit(registering("t\(tag)"), tag: tag) }
    try registry.submit(Self.survey, tag: 500)
    #expect(recorder.answers.isEmpty)
    #expect(loop.run { recorder.settled == 501 })
    #expect(recorder.answers.map(\.tag) == Array(0...500))
    #expect(recorder.conditions == [nil])
    #expect(registry.waiting == 0)
    let survey = try #require(recorder.answers[500].answer as? AudienceEstimate)
    #expect(survey.highWater == 500 && !survey.exists)
  }

  @Test("Changes that another claim has fenced fail with all later ones, and the registry continues")
  func fenced() throws {
    let registry = try open(options(statementTimeout: 5_000))
    let claim = RegistryCall.write(.devices) { store, _ in try store.claimChanges() }
    for tag in 0..<2 { try registry.submit(claim.request, tag: tag) }
    try registry.submit(registering("a", fence: 1), tag: 2)
    try registry.submit(registering("b", fence: 1), tag: 3)
    try registry.submit(registering("c", fence: 2), tag: 4)
    #expect(loop.run { recorder.settled == 5 })
    #expect(recorder.answers.map(\.tag) == [0, 1] && recorder.answers.map { $0.answer as? Int64 } == [1, 2])
    #expect(recorder.failures.map(\.tag) == [2, 3, 4] && recorder.failures[0].error == .fenced)
    try registry.submit(registering("a", fence: 2), tag: 5)
    #expect(loop.run { recorder.settled == 6 })
    #expect(recorder.answers.last?.tag == 5 && recorder.conditions == [nil] && recorder.writes.isEmpty)
  }

  @Test("Requests beyond the limit are refused at once")
  func bounded() throws {
    var options = options()
    options.mostWaiting = 3
    let registry = try open(options)
    for tag in 0..<3 { try registry.submit(registering("t\(tag)"), tag: tag) }
    #expect(throws: RegistryError.self) { try registry.submit(registering("t3"), tag: 3) }
    #expect(loop.run { recorder.settled == 3 })
    try registry.submit(registering("t4"), tag: 4)
    #expect(loop.run { recorder.settled == 4 })
  }

  @Test(
    "While another process holds the lock, writes fail with the reason, look-ups continue and nothing is lost afterwards")
  func locked() throws {
    let registry = try open(options())
    try registry.submit(registering("before"), tag: 0)
    #expect(loop.run { recorder.settled == 1 })
    let other = try SQLiteConnection(path: path, create: false, busyTimeout: 0)
    try other.execute("BEGIN EXCLUSIVE")
    try registry.submit(registering("during"), tag: 1)
    try registry.submit(registering("during too"), tag: 2)
    try registry.submit(Self.survey, tag: 3)
    #expect(loop.run { recorder.settled == 4 })
    #expect(recorder.failures.map(\.tag) == [1, 2] && recorder.answers.map(\.tag) == [0, 3])
    guard case .unavailable(.locked, let why) = recorder.failures[0].error else { throw TestFailure("another error") }
    #expect(why.contains(path))
    #expect(recorder.writes.count == 1 && recorder.writes[0].kind == .devices && recorder.writes[0].fault != nil)
    try other.execute("COMMIT")
    // Without any write, a probe finds that writing is possible again.
    var tag = 4
    #expect(
      loop.run {
        do throws(RegistryError) { try registry.submit(.probe, tag: tag) } catch { return true }
        tag += 1
        return recorder.writes.count == 2
      })
    #expect(recorder.writes.last?.fault == nil && recorder.conditions == [nil])
    try registry.submit(registering("after"), tag: tag)
    #expect(loop.run { recorder.answers.last?.tag == tag })
  }

  @Test("Withdrawn changes aren't applied any more, and other calls are answered")
  func withdrawn() throws {
    let registry = try open(options(statementTimeout: 5_000))
    try registry.submit(registering("before"), tag: 0)
    #expect(loop.run { recorder.settled == 1 })
    let other = try SQLiteConnection(path: path, create: false, busyTimeout: 0)
    try other.execute("BEGIN IMMEDIATE")
    // Under way until the lock is free, then the others are served.
    let campaign = CampaignDescription(id: [1], app: TestRegistry.app, messageID: [1], target: [], total: 0, highWater: 0)
    try registry.submit(RegistryCall.write(.campaigns) { try $0.createCampaign(campaign, now: $1) }.request, tag: 1)
    for tag in 2..<300 { try registry.submit(registering("t\(tag)"), tag: tag) }
    try registry.submit(Self.survey, tag: 300)
    registry.withdrawChanges()
    try registry.submit(registering("later"), tag: 301)
    try other.execute("COMMIT")
    #expect(loop.run { recorder.settled == 302 })
    #expect(recorder.answers.map(\.tag) == [0, 1, 300, 301] && recorder.failures.map(\.tag) == Array(2..<300))
    #expect(recorder.conditions == [nil] && recorder.writes.isEmpty)
  }

  @Test("A registry that can't be opened gives the reason, refuses at once, and returns when it is repaired")
  func comesBack() throws {
    try "not a database, but long enough to have a header of a hundred bytes, as a damaged file has one of them, see"
      .write(toFile: path, atomically: false, encoding: .utf8)
    let registry = try open(options())
    try registry.submit(registering("t"), tag: 0)
    #expect(loop.run { recorder.settled == 1 })
    guard case .unavailable(.unusable(.corrupt, _)) = registry.condition else { throw TestFailure("\(registry.condition)") }
    #expect(throws: RegistryError.self) { try registry.submit(registering("t"), tag: 1) }
    try remove(path)
    #expect(loop.run { registry.condition == .available })
    try registry.submit(registering("t"), tag: 2)
    #expect(loop.run { recorder.answers.count == 1 })
  }

  @Test("A registry that doesn't answer in time refuses more, while the loop continues")
  func slow() throws {
    var options = options(statementTimeout: 2_000)
    options.slowAfter = 0.05
    let registry = try open(options)
    #expect(loop.run { registry.condition == .available })
    let other = try SQLiteConnection(path: path, create: false, busyTimeout: 0)
    try other.execute("BEGIN EXCLUSIVE")
    try registry.submit(registering("waits"), tag: 0)
    var refusal: RegistryError?
    var turns = 0
    #expect(
      loop.run(atMost: 1.5) {
        turns += 1
        do throws(RegistryError) { try registry.submit(registering("more"), tag: 1) } catch { refusal = error }
        return refusal != nil
      })
    guard case .unavailable(.slow, _) = refusal else { throw TestFailure("\(String(describing: refusal))") }
    #expect(turns > 1)
    try other.execute("COMMIT")
    #expect(loop.run { registry.waiting == 0 })
    #expect(recorder.failures.isEmpty)
  }

  @Test("A registry whose file is deleted is unavailable, isn't created anew, and is used again when the file is back")
  func deletedUnderneath() throws {
    let registry = try open(options())
    try registry.submit(registering("before"), tag: 0)
    #expect(loop.run { recorder.settled == 1 })
    for suffix in ["", "-wal", "-shm"] where access(path + suffix, F_OK) == 0 {
      #expect(rename(path + suffix, path + ".away" + suffix) == 0)
    }
    try registry.submit(registering("into nothing"), tag: 1)
    #expect(loop.run { if case .unavailable(.unusable(.notARegistry, _)) = registry.condition { true } else { false } })
    #expect(recorder.failures.map(\.tag) == [1] && access(path, F_OK) != 0)
    for suffix in ["", "-wal", "-shm"] where access(path + ".away" + suffix, F_OK) == 0 {
      #expect(rename(path + ".away" + suffix, path + suffix) == 0)
    }
    #expect(loop.run { registry.condition == .available })
    try registry.submit(Self.survey, tag: 2)
    #expect(loop.run { recorder.settled == 3 })
    let survey = try #require(recorder.answers.last?.answer as? AudienceEstimate)
    #expect(survey.highWater == 1)
  }

  @Test("While answers come, nothing is refused because of older waiting calls")
  func slowButSteady() throws {
    var options = options(statementTimeout: 5_000)
    options.slowAfter = 0.25
    let registry = try open(options)
    #expect(loop.run { registry.condition == .available })
    // Each takes its time, with a thousand registrations.
    for tag in 0..<60 {
      let devices = (0..<500).map {
        RegistryChange.register(Registration(app: TestRegistry.app, platform: .fcm, token: Array("t\(tag)-\($0)".utf8)))
      }
      let load = RegistryRequest.call(.devices) { (store, now) throws(RegistryError) in try store.apply(devices, now: now) }
      try registry.submit(tag % 2 == 0 ? load : Self.survey, tag: tag)
    }
    let begun = ContinuousClock.now
    var batches: [Int] = []
    #expect(
      loop.run(atMost: 60) {
        if let last = batches.last, last == recorder.settled { return false }
        batches.append(recorder.settled)
        do throws(RegistryError) { try registry.submit(.probe, tag: 1_000) } catch { return true }
        return recorder.settled >= 60
      })
    #expect(recorder.failures.isEmpty && recorder.settled >= 60)
    // The first callers have their answers long before the last.
    #expect(batches.count > 5, "\(batches), \(ContinuousClock.now - begun)")
  }

  @Test("After close nothing is reported and nothing is accepted")
  func closes() throws {
    let registry = try open(options())
    try registry.submit(registering("t"), tag: 0)
    registry.close()
    #expect(throws: RegistryError.self) { try registry.submit(registering("t"), tag: 1) }
    loop.turn(waitingAtMost: 0.05)
    #expect(recorder.settled == 0)
  }

  @Test("A request made before the loop knows of a fault doesn't overtake those that failed with it")
  func order() throws {
    let registry = try open(options())
    let registering = { (token: String) in
      var device = Registration(app: TestRegistry.app, platform: .fcm, token: Array(token.utf8))
      device.installation = Array("i".utf8)
      return RegistryRequest.change(.register(device), fence: 0)
    }
    try registry.submit(registering("first"), tag: 0)
    #expect(loop.run { recorder.settled == 1 })
    let other = try SQLiteConnection(path: path, create: false, busyTimeout: 0)
    try other.execute("BEGIN IMMEDIATE")
    try registry.submit(registering("older"), tag: 1)
    // The thread gives up and waits for its next attempt, while the loop is busy.
    var wakeup = pollfd(fd: loop.mailbox.wakeup, events: Int16(POLLIN), revents: 0)
    #expect(poll(&wakeup, 1, 10_000) == 1)
    try registry.submit(registering("newer"), tag: 2)
    try other.execute("COMMIT")
    #expect(loop.run { recorder.settled == 3 })
    #expect(recorder.failures.map(\.tag) == [1, 2])
  }
}
