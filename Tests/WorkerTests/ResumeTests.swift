import Testing

@testable import DeviceRegistry
@testable import Delivery

@Suite("Resuming a campaign")
struct ResumeTests {
  /// Two workers with open breakers, and a campaign whose first page waits in the queue.
  private func fleet(openedLater later: Int64 = 0) throws -> FanoutModel {
    let model = try FanoutModel(devices: 40, workers: 2)
    model.request("b")
    take(0, model)
    for worker in model.workers { open(worker, later: later) }
    return model
  }

  /// Refuses so many tokens that the breaker opens, `later` milliseconds from now.
  private func open(_ worker: FanoutModel.Worker, later: Int64) {
    var breaker = Breaker(share: 0.5, sample: 1_000)
    for _ in 0..<1_000 { _ = breaker.note(isRefused: true, at: worker.loop.now, wallClock: worker.loop.wallClock + later) }
    worker.pipeline.feedback.marks.breakers = [breaker]
  }

  private func isOpen(_ worker: Int, _ model: FanoutModel) -> Bool { model.workers[worker].pipeline.feedback.marks.isOpen(0) }

  /// The worker processes the first message of the queue, up to the next page's message.
  private func take(_ worker: Int, _ model: FanoutModel) {
    model.deliver(to: worker)
    model.run(worker)
    model.arrive(worker)
  }

  /// An operator holds the campaign and lets it run again, `later` milliseconds from now.
  private func resume(_ model: FanoutModel, later: Int64) throws {
    let id = try #require(try model.store.campaigns(limit: 1).first).description.id
    let time = model.workers[0].loop.wallClock + later
    for state in [.held, .running] as [CampaignState] { #expect(try model.store.setState(state, of: id, now: time)) }
  }

  @Test("closes the breaker of every worker that receives one of its pages")
  func closes() throws {
    let model = try fleet()
    try resume(model, later: 5)
    take(0, model)
    #expect(!isOpen(0, model) && isOpen(1, model))
    take(1, model)
    #expect(!isOpen(1, model))
  }

  @Test("doesn't close a breaker that opened later, and only a stopped campaign's resumption counts")
  func newTrouble() throws {
    let model = try fleet(openedLater: 60_000)
    take(0, model)
    #expect(isOpen(0, model))
    try resume(model, later: 5)
    take(1, model)
    #expect(isOpen(1, model))
  }

  @Test("lets the breaker open again if as many tokens are refused as before")
  func again() throws {
    let model = try fleet()
    try resume(model, later: 5)
    take(0, model)
    #expect(!isOpen(0, model))
    open(model.workers[0], later: 60_000)
    #expect(isOpen(0, model))
    take(0, model)
    #expect(isOpen(0, model))
  }
}
