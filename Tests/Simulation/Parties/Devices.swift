import AMQP
import PushCore
import Simulator
import Wire

/// The devices of the registry: each second they acknowledge some of what they have got since, in messages of a few, now and then twice.
final class Devices {
  private unowned let world: World
  private let producer: Producer
  private let books: Books
  private let journals: [Journal]
  /// Of each journal, how many requests were looked at.
  private var seen: [Int]
  private var random: RandomSource
  private var messages = 0

  init(_ journals: [Journal], _ producer: Producer, _ books: Books, in world: World) {
    self.journals = journals
    self.producer = producer
    self.books = books
    self.world = world
    seen = journals.map { _ in 0 }
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
    for (place, journal) in journals.enumerated() {
      let entries = journal.entries
      for entry in entries[seen[place]...] where entry.status == 200 && Workload.isRegistered(entry.tokenText) {
        said += acknowledgements(of: entry)
      }
      seen[place] = entries.count
    }
    while !said.isEmpty {
      let count = min(Int.random(in: 1...6, using: &random), said.count)
      publish(Array(said.prefix(count)))
      said.removeFirst(count)
    }
  }

  /// A device reads what has moved its counter alone, so that no read finds none to take off.
  private func acknowledgements(of entry: JournalEntry) -> [AcknowledgementLedger.Said] {
    guard random.next() % 4 != 0, let messageID = Books.messageID(in: entry.payload) else { return [] }
    let app = Scenario.app(Workload.app(of: entry.tokenText))
    let received = AcknowledgementLedger.Said(app: app, token: entry.tokenText, messageID: messageID, event: .received)
    var said = [received]
    if Books.badge(in: entry.payload) != nil, random.next() % 2 == 0 {
      said.append(.init(app: app, token: entry.tokenText, messageID: messageID, event: .read))
    }
    return random.next() % 8 == 0 ? said + said : said
  }

  private func publish(_ said: [AcknowledgementLedger.Said]) {
    messages += 1
    let id = "acks-\(messages)"
    let bodies = said.map { what in
      let platform = Workload.platform(of: what.token) == .fcm ? "fcm" : "apns"
      return
        #"{"op":"\#(what.event == .read ? "read" : "received")","app":"\#(what.app)","token":"\#(platform):\#(what.token)","message_id":"\#(what.messageID)"}"#
    }
    var properties = BasicProperties()
    properties.deliveryMode = 2
    properties.userID = Array(Scenario.user.utf8)
    properties.messageID = Array(id.utf8)
    books.says(id, said)
    producer.publish(
      Outgoing(
        exchange: "push.acks", routingKey: "ack", properties: properties,
        body: bodies.count == 1 ? bodies[0] : "[\(bodies.joined(separator: ","))]"))
  }
}
