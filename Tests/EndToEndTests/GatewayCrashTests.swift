import Foundation
import TestSupport
import Testing

@Suite("Crashes around the gateway's HTTP door", .blocking, .early, .serialized)
struct GatewayCrashTests {
  private static let broker = Result { try Broker() }

  private func open(port: UInt16, broker: Broker) throws -> (site: Site, door: Door, worker: ChildProcess) {
    let site = try Site(broker: broker)
    try site.startFleet(settings: Door.settings(port, wait: 0))
    return (site, try Door(site, port: port), try site.startWorker())
  }

  /// Every request that was answered with 200 has reached its device.
  private func check(_ site: Site, _ worker: ChildProcess, _ devices: [String], isOnce: Bool) throws {
    if isOnce {
      // Another worker wouldn't recognise a copy. This one receives everything that was published; this push is the last.
      try site.send(tokens: [token(1 << 40)])
      #expect(try eventually { try site.deliveries()[token(1 << 40)] != nil })
    }
    worker.signal(15)
    #expect(worker.wait() == 0)
    try site.drain()
    let deliveries = try site.deliveries()
    #expect(devices.filter { deliveries[$0] == nil } == [])
    if isOnce { #expect(deliveries.filter { $0.value > 1 } == [:]) }
    #expect(try site.depths(["send.normal", "dead"]) == [0, 0])
  }

  @Test(
    "kill -9 of a gateway under load, again and again: requests answered with 200 are delivered, and repetitions are sent once",
    arguments: [0, 1])
  func gatewayKilled(wait: Int) throws {
    let site = try Site()
    let port = try FreePorts.take(1)[0]
    try site.startFleet(settings: Door.settings(port, wait: wait))
    var door = try Door(site, port: port)
    let worker = try site.startWorker()
    let load = DoorLoad(ports: [port], key: try door.key().key)
    for round in 1...3 {
      #expect(eventually { load.answered >= round * 60 })
      door.gateway.end()
      door = try Door(site, port: port)
    }
    #expect(eventually { load.answered >= 240 })
    let devices = load.end().map(token)
    #expect(load.others[0, default: 0] > 0 && load.silent == 0, "\(load.others)")
    try check(site, worker, devices, isOnce: true)
  }

  @Test(
    "kill -9 of the broker behind a gateway under load: requests answered with 200 are delivered, the rest is 503 until it is back"
  )
  func brokerKilled() throws {
    let broker = try Self.broker.get()
    let port = try FreePorts.take(1)[0]
    let (site, door, worker) = try open(port: port, broker: broker)
    try site.importDevices([1], #""user":"u""#)
    let key = try door.key().key
    let load = DoorLoad(ports: [port], key: key)
    let receptions = DoorLoad(.receptions, ports: [port], key: key, senders: 4)
    #expect(eventually { load.answered >= 100 && receptions.answered >= 50 })
    #expect(
      eventually { broker.isOnDisk(queue: "\(site.prefix).send.normal") && broker.isOnDisk(queue: "\(site.prefix).acks") })
    broker.kill9()
    #expect(eventually { load.others[503, default: 0] > 8 })
    #expect(door.probe.ask("/readyz")?.status == 503 && door.probe.ask("/livez")?.status == 200)
    try broker.restart()
    #expect(eventually { door.probe.ask("/readyz")?.status == 200 })
    let before = (load.answered, receptions.answered)
    #expect(eventually { load.answered >= before.0 + 50 && receptions.answered >= before.1 + 25 })
    let (devices, received) = (load.end().map(token), receptions.end())
    #expect(
      Set(load.others.keys).union(receptions.others.keys) == [503] && load.silent + receptions.silent == 0, "\(load.others)")
    // And the receptions of devices are stored.
    #expect(try eventually { try site.depths(["acks"]) == [0] })
    try check(site, worker, devices, isOnce: false)
    let noted = Set(try site.take("receipts").compactMap { $0.json["message_id"] as? String })
    #expect(noted == Set(received.map(String.init)))
    door.gateway.signal(15)
    #expect(door.gateway.wait() == 0)
  }

  @Test(
    "while the broker has an alarm requests are 503 with Retry-After; accepted ones and repetitions are delivered"
  )
  func alarm() throws {
    let broker = try Self.broker.get()
    let port = try FreePorts.take(1)[0]
    let (site, door, worker) = try open(port: port, broker: broker)
    let load = DoorLoad(ports: [port], key: try door.key().key, senders: 4)
    #expect(eventually { load.answered >= 50 })
    try broker.raiseMemoryAlarm()
    #expect(eventually { load.others[503, default: 0] >= 20 })
    #expect(door.probe.ask("/readyz")?.status == 503 && door.probe.ask("/livez")?.status == 200)
    try broker.clearMemoryAlarm()
    #expect(eventually { door.probe.ask("/readyz")?.status == 200 })
    let before = load.answered
    #expect(eventually { load.answered >= before + 50 })
    let devices = load.end().map(token)
    #expect(Set(load.others.keys) == [503] && load.silent == 0, "\(load.others)")
    worker.signal(15)
    #expect(worker.wait() == 0)
    try site.drain()
    let deliveries = try site.deliveries()
    #expect(deliveries == Dictionary(uniqueKeysWithValues: devices.map { ($0, 1) }))
    #expect(try site.depths(["send.normal", "dead"]) == [0, 0])
  }
}
