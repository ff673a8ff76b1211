import AMQP
import Broker
import DeviceRegistry
import Foundation
import Logging
import PushCore
import Reactor
import TestSupport
import Testing
import Wire

@testable import Delivery
@testable import Worker

@Suite("Receipts of devices' acknowledgements")
struct ReceiptsTests {
  private static let app = Array("com.example.app".utf8)

  private static func delivery(_ number: Int, _ count: Int) -> Delivery {
    var delivery = Delivery()
    let one = #"{"op":"received","token":"t","message_id":"m-\#(number)-"#
    delivery.body = Array("[\((0..<count).map { one + "\($0)\"}" }.joined(separator: ","))]".utf8)
    delivery.bodySize = UInt64(delivery.body.count)
    delivery.properties.appID = app
    delivery.properties.messageID = Array("acks-\(number)".utf8)
    return delivery
  }

  @Test("leave the outbox room for pushes' consequences, even if the broker confirms none")
  func room() throws {
    let loop = try EventLoop()
    let path = NSTemporaryDirectory() + "pushfleet-receipts-\(UUID().uuidString).db"
    defer { for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) } }
    let log = Log(level: .error)
    let registry = try RegistryClient(
      .sqlite(path: path), limits: RegistryLimits(), host: loop, log: log)
    let apps = Applications()
    _ = apps.put(Self.app, packages: [], senders: [])
    let outbox = Outbox(time: loop.time, log: log)
    let tools = ShardTools(
      apps: apps, registry: registry, publications: OutcomePublications(prefix: "push", apps: apps, steps: []),
      outbox: outbox, time: loop.time, log: log)
    let queue = AcknowledgementQueue(tools, wantsReceipts: true)
    var isRegistered = false
    registry.call(.apply(.register(Registration(app: Self.app, platform: .fcm, token: Array("t".utf8))), fence: 0)) { _ in
      isRegistered = true
    }
    #expect(loop.run(atMost: 10) { isRegistered })
    // The largest batch: almost the limit of one write, plus a message of the largest size.
    queue.registryChangeDelivered(Self.delivery(0, 999))
    for number in 1..<12 { queue.registryChangeDelivered(Self.delivery(number, 1_000)) }
    #expect(
      loop.run(atMost: 30) {
        queue.flush()
        return outbox.backlog >= 2_999
      })
    // A call made after a batch is answered after it.
    var answers = 0
    for round in 1...3 {
      queue.flush()
      registry.call(.write(.notes) { try $0.acknowledge([], wantsReceipts: true, now: $1) }) { _ in answers += 1 }
      #expect(loop.run(atMost: 10) { answers == round })
    }
    #expect(!outbox.isFull && queue.count == 12, "\(outbox.backlog)")
  }
}
