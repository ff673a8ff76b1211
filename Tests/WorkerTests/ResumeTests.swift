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

    func hold() { pipeline.registryAnswered(.hold(ResumeTests.campaign), .happened(true)) }

    /// A page comes from the queue while the campaign is in a state.
    /// - Returns: its ticket as the next worker gets it.
    func read(_ ticket: PageTicket, _ state: CampaignState) throws -> PageTicket {
      let body = Array(#"{"to":"/topics/news","data":{"k":"v"}}"#.utf8)
      let entry = pipeline.table.insert(from: .fanoutNormal)
      entry.delivery.body = body
      entry.delivery.bodySize = UInt64(body.count)
      entry.held = try HeldRequest(parsing: body, limits: RequestLimits())
      entry.app = 0
      entry.audience = .topic(Array("news".utf8))
      entry.page = ticket
      entry.deadline = .max
      let description = CampaignDescription(
        id: ResumeTests.campaign, app: ResumeTests.app, messageID: [], target: [], total: 10, highWater: 10)
      let account = Campaign(
        description: description, state: state, sent: 0, failed: 0, pagesDone: 0, createdAt: 0, updatedAt: 0)
      let (index, generation) = (entry.index, entry.generation)
      pipeline.registryAnswered(.account(entry: index, generation: generation), .campaign(account))
      pipeline.registryAnswered(
        .page(entry: index, generation: generation), .page(AudiencePage(devices: DeviceRows(), next: 5, isLast: false)))
      let left = try #require(entry.page)
      var headers = FieldTable()
      (state == .running ? left.next(after: 5) : left).append(to: &headers)
      return try #require(PageTicket(headers))
    }
  }

  static let page = PageTicket(campaign: campaign, number: 0, after: 0, upTo: 10, deadline: 1_000_000)

  @Test("closes the breaker of the worker that held it with the next page it reads, whichever that is")
  func ownHold() throws {
    let shard = try Shard()
    shard.openBreaker()
    shard.hold()
    #expect(shard.isOpen)
    _ = try shard.read(Self.page, .held)
    #expect(shard.isOpen)
    _ = try shard.read(Self.page.next(after: 5), .running)
    #expect(!shard.isOpen)
  }

  @Test(
    "closes the breaker of every worker that one of its later pages comes to",
    arguments: [CampaignState.held, .paused])
  func othersHold(state: CampaignState) throws {
    let (first, second, third) = (try Shard(), try Shard(), try Shard())
    for shard in [second, third] { shard.openBreaker() }
    let stopped = try first.read(Self.page, state)
    #expect(stopped.stoppedAt != nil && stopped.number == 0)
    let next = try second.read(stopped, .running)
    #expect(!second.isOpen && third.isOpen)
    #expect(next.number == 1 && next.after == 5)
    _ = try third.read(next, .running)
    #expect(!third.isOpen)
  }

  @Test("doesn't close what has opened since, and a campaign that was never stopped closes nothing")
  func newTrouble() throws {
    let shard = try Shard()
    let stopped = try shard.read(Self.page, .held)
    shard.openBreaker(later: 1_000)
    _ = try shard.read(stopped, .running)
    #expect(shard.isOpen)

    let other = try Shard()
    other.openBreaker()
    let next = try other.read(Self.page, .running)
    #expect(other.isOpen && next.stoppedAt == nil)
  }

  @Test("lets the breaker open again when as many tokens are refused as before")
  func again() throws {
    let shard = try Shard()
    shard.openBreaker()
    shard.hold()
    _ = try shard.read(Self.page, .running)
    #expect(!shard.isOpen)
    shard.openBreaker(later: 1)
    #expect(shard.isOpen)
    _ = try shard.read(Self.page, .running)
    #expect(shard.isOpen)
  }

  @Test("a page's ticket keeps what is left of it beside the time it was stopped at")
  func ticket() throws {
    var ticket = Self.page
    ticket.stoppedAt = 1_800_000_000_000
    ticket.pending = [3, 4, 9]
    var headers = FieldTable()
    ticket.append(to: &headers)
    #expect(PageTicket(headers) == ticket)
  }
}
