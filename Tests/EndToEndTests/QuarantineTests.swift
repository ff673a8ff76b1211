import Foundation
import TestSupport
import Testing

@Suite("A request that kills its worker", .blocking)
struct QuarantineTests {
  @Test("ends alone in the dead letters after a few workers; their other requests are delivered")
  func culprit() throws {
    let site = try Site()
    let culprit = token(1)
    // While its answer is awaited, the request is in hand, with everything behind it.
    try site.startSimulator(script: [culprit: ["stall": true]], settings: "shards: 2,")
    try site.declareTopology()
    let neighbours = (100..<140).map(token)
    try site.send(tokens: [culprit] + neighbours)
    let journal = try site.followJournal()
    var kills = 0
    while kills < 12 {
      let worker = try site.startWorker()
      guard
        journal.waitForOutput(#""token":"\#(culprit)""#, times: kills + 1, seconds: try site.depths(["dead"]) == [0] ? 20 : 0.1)
      else {
        break
      }
      worker.end()
      kills += 1
      // The broker has noticed the loss when the requests in hand are ready again, or have been given up.
      #expect(try eventually { try site.depths(["send.normal", "quarantine", "dead"]).reduce(0, +) > 0 })
    }
    print("\(kills) workers died of it")
    #expect((3...8).contains(kills))
    try site.drain()
    let letters = try site.take("dead")
    #expect(letters.count == 1 && letters.first?.json["to"] as? String == culprit)
    #expect(letters.first?.header("x-push-error") == "InternalServerError")
    #expect(letters.first?.header("x-push-reason")?.contains("poison") == true)
    #expect(try Set(site.deliveries().keys) == Set(neighbours))
    #expect(try site.depths(["send.normal", "quarantine", "retry.1s"]) == [0, 0, 0])
  }

  @Test("a harmless request that waits alone for a provider survives any number of worker stops")
  func stops() throws {
    let site = try Site()
    try site.startSimulator(settings: #"log: "debug","#)
    try site.declareTopology()
    site.stopSimulator()
    let request: [String: Any] = [
      "body": ["to": token(1)], "properties": ["message_id": "m", "headers": ["x-push-origin": "send.normal"]],
      "exchange": "\(site.prefix).retry", "routing_key": "quarantine",
    ]
    try site.publish(lines: [request])
    for _ in 0..<6 {
      let worker = try site.startWorker()
      #expect(worker.waitForOutput("request taken", seconds: 30))
      worker.signal(15)
      #expect(worker.wait() == 0)
      #expect(try eventually { try site.depths(["quarantine", "dead"]) == [1, 0] })
    }
    try site.startSimulator(settings: #"log: "debug","#)
    let worker = try site.startWorker()
    #expect(try eventually { try site.deliveries() == [token(1): 1] })
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try site.depths(["quarantine", "dead", "send.normal"]) == [0, 0, 0])
  }
}
