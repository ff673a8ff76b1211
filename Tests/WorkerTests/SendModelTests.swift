import Broker
import TestSupport
import Testing

@testable import Delivery

@Suite("Requests and lost channels, step by step")
struct SendModelTests {
  @Test("a list's copy for the ladder leaves when the consequences of its other devices are confirmed")
  func copyOfList() throws {
    let model = try SendModel(workers: 1)
    let worker = model.workers[0]
    worker.take(list: [.gone(.notRegistered), .delivered, .retry(.perDevice, .unavailable), .drop(.invalidParameters)])
    var kinds: [Publication.Kind] = []
    while let (slot, publication) = worker.nextPublication() {
      kinds.append(publication.kind)
      worker.settle(slot, isHeardOf: kinds.count != 1)
    }
    #expect(kinds.count == 4 && kinds.last == .retry, "\(kinds)")
    #expect(worker.held.isEmpty && worker.isIdle)
  }

  @Test("a request whose push was answered without a channel is under way until it comes back", arguments: 1...3)
  func lostWhileStopping(_ losses: Int) throws {
    let model = try SendModel(workers: 1)
    let worker = model.workers[0]
    model.publish(1)
    model.deliver(to: 0)
    model.send(0)
    for loss in 1...losses {
      model.loseChannel(0)
      model.queue[0].properties.headers = ["x-delivery-count": .integer(Int64(loss))]
      if loss == losses { model.answer(0, .delivered, at: 0) }
      #expect(!worker.hasNothingUnderway)
      model.deliver(to: 0)
    }
    // It is recognised, also if the broker's count makes it a suspect for the quarantine.
    #expect(worker.hasNothingUnderway && worker.held.isEmpty && worker.nextPublication() == nil)
    #expect(model.asked[1] == 1)
  }

  @Test("a stopping worker acknowledges a request whose dead letter was confirmed without a channel")
  func confirmedWhileStopping() throws {
    let model = try SendModel(workers: 1)
    let worker = model.workers[0]
    model.publish(1)
    model.deliver(to: 0)
    model.send(0)
    model.answer(0, .refused, at: 0)
    worker.drain()
    model.loseChannel(0)
    model.confirm(0, isHeardOf: true)
    #expect(model.dead == [1] && !worker.hasNothingUnderway)
    model.deliver(to: 0)
    #expect(worker.hasNothingUnderway && worker.held.isEmpty && worker.nextPublication() == nil)
  }

  @Test("a stopping worker that gets a begun list back leaves its other targets to another worker")
  func listWhileStopping() throws {
    let model = try SendModel(workers: 1)
    let worker = model.workers[0]
    model.publish(1)
    let tokens = (1...2).map { "\"\(String(repeating: "0", count: 63))\($0)\"" }
    model.queue[0].body = Array("{\"registration_ids\":[\(tokens.joined(separator: ","))]}".utf8)
    model.deliver(to: 0)
    model.send(0)
    model.answer(0, .delivered, at: 0)
    worker.drain()
    model.loseChannel(0)
    model.deliver(to: 0)
    let (slot, publication) = try #require(worker.nextPublication())
    #expect(publication.kind == .retry && !worker.hasNothingUnderway)
    worker.settle(slot, isHeardOf: true)
    #expect(worker.hasNothingUnderway && worker.held.isEmpty)
  }

  @Test("if channels are lost, each acknowledged request has reached the provider or is kept on a queue")
  func lostChannels() throws {
    let first = UInt64.random(in: 0...UInt64(UInt32.max))
    for seed in first..<first + 100 {
      var generator = SeededGenerator(seed: seed)
      let model = try SendModel(workers: 2)
      for worker in model.workers {
        worker.mayBeDone = { number in
          model.asked[number] != nil || model.queue.contains { $0.number == number }
            || model.workers.contains { $0.held.values.contains { $0.number == number } }
        }
      }
      defer { for worker in model.workers { worker.mayBeDone = nil } }
      var published = 0
      let answers: [SendModel.Worker.Answer] = [
        .delivered, .delivered, .delivered, .delivered, .gone, .refused, .overloaded, .unknown, .notSent, .outOfReach,
      ]
      for _ in 0..<Int.random(in: 50...600, using: &generator) {
        let worker = Int.random(in: 0..<2, using: &generator)
        switch Int.random(in: 0..<100, using: &generator) {
        case 0..<15:
          model.publish(published)
          published += 1
        case 15..<18:
          // The producer repeats one of its last requests.
          if published > 0 { model.publish(Int.random(in: max(0, published - 6)..<published, using: &generator)) }
        case 18..<45: model.deliver(to: worker)
        case 45..<65: model.send(worker)
        case 65..<82:
          model.answer(worker, answers.randomElement(using: &generator)!, at: Int.random(in: 0..<8, using: &generator))
        case 82..<92: model.confirm(worker, isHeardOf: Int.random(in: 0..<5, using: &generator) > 0)
        case 92..<94: model.workers[worker].forgetStrayed()
        default: model.loseChannel(worker)
        }
      }
      for worker in model.workers { worker.forgetStrayed() }
      model.finish()
      for worker in model.workers { worker.forgetStrayed() }
      model.finish()
      let lost = (0..<published).filter { model.asked[$0] == nil }
      #expect(lost == [], "seed \(seed)")
      #expect(model.workers.flatMap(\.doneTooEarly) == [], "seed \(seed)")
      #expect(model.isQuiet, "seed \(seed): something is held for ever")
      for worker in model.workers { #expect(worker.isLedgerBalanced, "seed \(seed)") }
    }
  }

  @Test("the breaker of tokens works without a registry")
  func breaker() throws {
    let model = try SendModel(workers: 1)
    for number in 0..<20 {
      #expect(!model.workers[0].isBreakerOpen)
      model.publish(number)
      model.deliver(to: 0)
      model.send(0)
      model.answer(0, .gone, at: 0)
      while model.workers[0].nextPublication() != nil { model.confirm(0, isHeardOf: true) }
    }
    #expect(model.workers[0].isBreakerOpen)
  }

  @Test("a parked request whose channel was lost goes only to another worker, without a copy on the ladder")
  func parkedAndRedelivered() throws {
    let model = try SendModel(workers: 2)
    for number in 0..<5 { model.publish(number) }
    for _ in 0..<5 { model.deliver(to: 0) }
    // One was attempted and has failed; the others wait for an unreachable provider.
    model.send(0)
    model.answer(0, .overloaded, at: 0)
    model.workers[0].park()
    model.loseChannel(0)
    #expect(model.queue.count == 5)
    for _ in 0..<5 { model.deliver(to: 1) }
    model.finish()
    model.workers[0].forgetStrayed()
    model.finish()
    #expect(model.isQuiet && model.asked == [0: 2, 1: 1, 2: 1, 3: 1, 4: 1] && model.taken.values.allSatisfy { $0 == 1 })
  }

  @Test("an attempted and parked request continues here when it is redelivered here")
  func parkedAndBack() throws {
    let model = try SendModel(workers: 1)
    model.publish(0)
    model.deliver(to: 0)
    model.send(0)
    model.answer(0, .overloaded, at: 0)
    model.loseChannel(0)
    model.deliver(to: 0)
    #expect(model.queue.isEmpty)
    model.finish()
    #expect(model.isQuiet && model.asked == [0: 2] && model.taken == [0: 1])
  }

  /// One request, delivered twice by the same channel.
  private func modelWithRepeatedDelivery() throws -> SendModel {
    let model = try SendModel(workers: 1)
    model.publish(0)
    let message = model.queue[0]
    model.deliver(to: 0)
    model.workers[0].accept(message)
    return model
  }

  @Test("a redelivery on a live channel is sent once, and acknowledged with the first delivery, not before")
  func deliveredTwice() throws {
    let model = try modelWithRepeatedDelivery()
    #expect(model.workers[0].held.count == 2)
    model.send(0)
    #expect(model.workers[0].held.count == 2)
    model.answer(0, .delivered, at: 0)
    #expect(model.isQuiet && model.asked == [0: 1])
  }

  @Test("a request delivered twice on one channel comes back when the channel is lost")
  func deliveredTwiceAndLost() throws {
    let model = try modelWithRepeatedDelivery()
    model.loseChannel(0)
    #expect(model.queue.count == 2)
    model.queue.removeLast()
    model.finish()
    #expect(model.isQuiet && model.asked == [0: 1])
  }

  @Test("requests that don't come back are forgotten in one order, whatever their fingerprints are")
  func forgottenInOrder() throws {
    let model = try SendModel(workers: 1)
    for number in 0..<4 {
      model.publish(number)
      model.deliver(to: 0)
      model.send(0)
    }
    model.loseChannel(0)
    for _ in 0..<4 { model.answer(0, .delivered, at: 0) }
    model.queue = []
    model.workers[0].forgetStrayed()
    for number in 4..<8 {
      model.publish(number)
      model.deliver(to: 0)
    }
    #expect(model.workers[0].places == (0..<4).reversed())
  }

  @Test("an urgent request goes before a returned push, which goes before others of its kind")
  func lanes() throws {
    var lanes = try SendModel(workers: 1).workers[0].lanes
    func entry(_ queue: WorkQueue, hold: Int? = nil) -> InFlight {
      let entry = InFlight(index: 0)
      entry.source.queue = queue
      entry.source.hold = hold
      return entry
    }
    lanes.append(.init(request: .init(index: 1, generation: 0)), of: entry(.sendNormal))
    lanes.putBack(.init(request: .init(index: 2, generation: 0), isReturned: true), of: entry(.sendNormal))
    lanes.append(.init(request: .init(index: 3, generation: 0)), of: entry(.sendHigh))
    lanes.append(.init(request: .init(index: 5, generation: 0)), of: entry(.sendNormal, hold: 0))
    lanes.putBack(.init(request: .init(index: 4, generation: 0), isReturned: true), of: entry(.fanoutHigh))
    var order: [Int] = []
    while let waiting = lanes.popFirst() { order.append(waiting.request.index) }
    #expect(order == [3, 4, 5, 2, 1] && lanes.isEmpty)
  }
}
