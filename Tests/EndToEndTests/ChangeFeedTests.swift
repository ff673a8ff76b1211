import Foundation
import TestSupport
import Testing

@Suite("Changes that the registry can't store", .blocking)
struct ChangeFeedTests {
  @Test("time out at the broker without an effect on pushes; another worker applies them, in order")
  func consumerTimeout() throws {
    let broker = try Broker(configuration: ["consumer_timeout = 2000"])
    defer { broker.stop() }
    try broker.evaluate("application:set_env(rabbit, channel_tick_interval, 500).")
    let site = try Site(broker: broker)
    try site.startFleet()
    try site.configureFleet("sqlite:other.db")
    let other = try site.write(
      try String(contentsOfFile: site.file("pushfleet.json5"), encoding: .utf8), to: "other.json5")
    try site.configureFleet("sqlite:registry.db")
    let first = try site.startWorker()
    _ = try site.change([["platform": "fcm", "token": "before"]])
    let holder = try LockHolder(site.file("registry.db"))
    let installations = 20
    try site.publishChanges(
      ["old", "new"].flatMap { word in
        (0..<installations).map { (["platform": "fcm", "token": "\(word)\($0)", "installation": "i\($0)"], [:]) }
      })
    #expect(first.waitForOutput("the registry can't be written to", seconds: 90), "\(first.outputSoFar)")
    let second = try site.start(["worker", "--config", other])
    #expect(second.waitForOutput("consuming the registry's changes", seconds: 60), "\(second.outputSoFar)")
    let pushes = 400
    try site.send(tokens: (0..<pushes).map { token($0) })
    #expect(first.waitForOutput("closed the channel of the registry's changes", seconds: 60), "\(first.outputSoFar)")
    #expect(try eventually { try site.depths(["registry"]) == [0] && site.deliveries().count == pushes })
    second.signal(15)
    #expect(second.wait() == 0)
    first.signal(15)
    #expect(first.wait() == 0)
    holder.end()
    for worker in [first, second] { #expect(!worker.outputSoFar.contains("closed the consuming channel")) }
    #expect(try site.deliveries().values.allSatisfy { $0 == 1 })
    #expect(try site.depths(["dead"]) == [0])
    let devices = Site.objects(try site.run(["devices", "export", "--config", other]).output)
    #expect(Set(devices.compactMap { $0["token"] as? String }) == Set((0..<installations).map { "new\($0)" }))
  }
}
