import AMQP
import PushCore
import Simulator
import Wire

/// The registered devices. Each second they acknowledge some of their pushes, a few per message, sometimes twice.
final class Devices {
  private unowned let world: World
  private let producer: Producer
  private let recorder: OutcomeRecorder
  private let providers: [SimulatedProvider]
  /// Number of processed entries of each journal.
  private var seen: [Int]
  private var random: RandomSource
  private var messages = 0

  init(_ providers: [SimulatedProvider], _ producer: Producer, _ recorder: OutcomeRecorder, in world: World) {
    self.providers = providers
    self.producer = producer
    self.recorder = recorder
    self.world = world
    seen = providers.map { _ in 0 }
    random = RandomSource(seed: world.seed ^ 0xD0_0D)
  }

  func begin() {
    world.schedule(after: 1) { [self] in
      speak()
      begin()
    }
  }

  private func speak() {
    var said: [AcknowledgementLedger.Said] = []
    for (place, provider) in providers.enumerated() {
      let entries = provider.journal.entries
      for entry in entries[seen[place]...] where entry.isAccepted && Workload.isRegistered(provider.device(of: entry)) {
        said += acknowledgements(of: entry, by: provider.device(of: entry))
      }
      seen[place] = entries.count
    }
    while !said.isEmpty {
      let count = min(Int.random(in: 1...6, using: &random), said.count)
      publish(Array(said.prefix(count)))
      said.removeFirst(count)
    }
  }

  /// A device reads only pushes that changed its counter, so that each read lowers the counter.
  private func acknowledgements(of entry: JournalEntry, by token: String) -> [AcknowledgementLedger.Said] {
    guard random.next() % 4 != 0, let messageID = OutcomeRecorder.messageID(in: entry.payload) else { return [] }
    let app = Scenario.app(Workload.app(of: token))
    let received = AcknowledgementLedger.Said(app: app, token: token, messageID: messageID, event: .received)
    var said = [received]
    if OutcomeRecorder.badge(in: entry.payload) != nil, random.next() % 2 == 0 {
      said.append(.init(app: app, token: token, messageID: messageID, event: .read))
    }
    return random.next() % 8 == 0 ? said + said : said
  }

  private func publish(_ said: [AcknowledgementLedger.Said]) {
    messages += 1
    let id = "acks-\(messages)"
    let bodies = said.map { what in
      let token = Workload.reference(what.token)
      return
        #"{"op":"\#(what.event == .read ? "read" : "received")","app":"\#(what.app)","token":"\#(token)","message_id":"\#(what.messageID)"}"#
    }
    var properties = BasicProperties()
    properties.deliveryMode = 2
    properties.userID = Array(Scenario.user.utf8)
    properties.messageID = Array(id.utf8)
    recorder.says(id, said)
    producer.publish(
      Outgoing(
        exchange: "push.acks", routingKey: "ack", properties: properties,
        body: bodies.count == 1 ? bodies[0] : "[\(bodies.joined(separator: ","))]"))
  }
}
