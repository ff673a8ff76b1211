import Foundation
import TestSupport
import Testing

@Suite("Once is enough")
struct DuplicateTests {
  @Test("F-32: a producer's retransmission is sent once, in a list as well; another body or id is another request")
  func retransmission() throws {
    let site = try Site()
    try site.startSimulator(script: [token(9): ["status": 410, "reason": "Unregistered"]])
    try site.declareTopology()
    func request(_ number: Int, _ value: String) -> String { #"{"to":"\#(token(number))","data":{"k":"\#(value)"}}"# }
    let list = #"{"registration_ids":["\#(token(5))","\#(token(9))"]}"#
    try site.publish([
      (request(1, "a"), ["message_id": "one"]), (request(1, "a"), ["message_id": "one"]),
      (request(1, "b"), ["message_id": "one"]),
      (request(1, "a"), ["message_id": "other"]), (request(2, "a"), [:]), (request(2, "a"), [:]),
      (list, ["message_id": "list"]), (request(1, "a"), ["message_id": "one"]), (list, ["message_id": "list"]),
    ])
    let figures = try site.drain()
    #expect(figures["duplicates_suppressed"] as? Int == 3)
    #expect(try site.deliveries() == [token(1): 3, token(2): 2, token(5): 1])
    #expect(try site.depths(["send.normal", "dead"]) == [0, 0])
  }

  @Test("what failed may be sent again under the same id")
  func replay() throws {
    let site = try Site()
    try site.startSimulator(script: [token(1): [["status": 400, "reason": "DeviceTokenNotForTopic"]]])
    try site.declareTopology()
    let worker = try site.startWorker()
    let request: (body: Any, properties: [String: Any]) = (#"{"to":"\#(token(1))"}"#, ["message_id": "one"])
    try site.publish([request])
    let letter = try #require(try site.take("dead", count: 1).first)
    let journal = try site.followJournal()
    try site.publish([(letter.body, ["message_id": letter.id, "headers": letter.headers])])
    #expect(journal.waitForLines(2, seconds: 20))
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try site.deliveries() == [token(1): 1])
  }
}
