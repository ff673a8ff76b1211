import PushCore
import Reactor
import TestSupport
import Testing

@testable import AMQP
@testable import Storage
@testable import Worker

@Suite("Resuming a campaign")
struct ResumeTests {
  static let campaign = Array("c-1".utf8)
  static let app = Array("com.example.app".utf8)

  /// One worker's pipeline, without broker, registry or providers: what they would answer is told to it.
  final class Shard {
    let loop: EventLoop
    let pipeline: Pipeline

    init() throws {
      loop = try EventLoop()
      let log = Log(level: .error)
      pipeline = Pipeline(
        apps: [Pipeline.App(id: ResumeTests.app, packages: [], routes: Pipeline.Routes())],
        intake: Intake(apps: [(ResumeTests.app, [])], limits: RequestLimits()),
        publications: OutcomePublications(
          prefix: "push", apps: ["com.example.app"], steps: [RetryStep(name: "10s", delay: 10_000)]),
        outbox: Outbox(loop: loop, log: log), loop: loop, log: log, results: .none, attemptLimit: 10)
      pipeline.breakers = [Breaker(share: 0.3, sample: 10)]
    }

    var isOpen: Bool { pipeline.breakers[0].isOpen }

    /// So many tokens are refused that the breaker opens, `later` milliseconds from now.
    func openBreaker(later: Int64 = 0) {
      for _ in 0..<10 { _ = pipeline.breakers[0].note(isRefused: true, at: loop.wallClock + later) }
    }

    /// A page comes from the queue while the campaign runs, resumed `later` milliseconds from now or never.
    func open(resumedLater later: Int64?) throws {
      let body = Array(#"{"to":"/topics/news","data":{"k":"v"}}"#.utf8)
      let entry = pipeline.table.insert(from: .fanoutNormal)
      entry.delivery.body = body
      entry.delivery.bodySize = UInt64(body.count)
      entry.held = try HeldRequest(parsing: body, limits: RequestLimits())
      entry.app = 0
      entry.work = AudienceWork(.topic(Array("news".utf8)))
      entry.page = PageTicket(campaign: ResumeTests.campaign, number: 0, after: 0, upTo: 10, deadline: .max)
      entry.deadline = .max
      let description = CampaignDescription(
        id: ResumeTests.campaign, app: ResumeTests.app, messageID: [], target: [], total: 10, highWater: 10)
      let account = Campaign(
        description: description, state: .running, sent: 0, failed: 0, pagesDone: 0, createdAt: 0, updatedAt: 0,
        resumedAt: later.map { loop.wallClock + $0 })
      let page = AudiencePage(devices: DeviceRows(), next: 5, isLast: false)
      pipeline.registryAnswered(
        .request(.openPage, entry: entry.index, generation: entry.generation), .opened(.open(page, nil, account)))
    }
  }

  @Test("closes the breaker of every worker that one of its pages comes to")
  func closes() throws {
    for shard in [try Shard(), try Shard()] {
      shard.openBreaker()
      #expect(shard.isOpen)
      try shard.open(resumedLater: 5)
      #expect(!shard.isOpen)
    }
  }

  @Test("doesn't close what has opened since, and a campaign that was never stopped closes nothing")
  func newTrouble() throws {
    let shard = try Shard()
    shard.openBreaker(later: 1_000)
    try shard.open(resumedLater: 5)
    #expect(shard.isOpen)
    try shard.open(resumedLater: nil)
    #expect(shard.isOpen)
  }

  @Test("lets the breaker open again when as many tokens are refused as before")
  func again() throws {
    let shard = try Shard()
    shard.openBreaker()
    try shard.open(resumedLater: 5)
    #expect(!shard.isOpen)
    shard.openBreaker(later: 10)
    #expect(shard.isOpen)
    try shard.open(resumedLater: 5)
    #expect(shard.isOpen)
  }
}
