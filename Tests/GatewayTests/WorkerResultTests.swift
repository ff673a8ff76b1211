import Testing

@testable import Gateway

@Suite("Results of workers")
struct WorkerResultTests {
  @Test(
    "are the answer to the same request as long as it is known, unless nobody was reached and what stood in the way passes",
    arguments: [
      (#"{"success":0,"failure":1,"results":[{"error":"Unavailable"}]}"#, false),
      (#"{"success":0,"failure":2,"results":[{"error":"InternalServerError"},{"error":"DeviceMessageRateExceeded"}]}"#, false),
      (#"{"success":0,"failure":2,"results":[{"error":"Unavailable"},{"error":"NotRegistered"}]}"#, true),
      (#"{"success":1,"failure":1,"results":[{"message_id":"p"},{"error":"Unavailable"}]}"#, true),
      (#"{"success":0,"failure":1,"results":[{"error":"Unknown"}]}"#, true),
      (#"{"success":0,"failure":1,"results":[{"error":"of another version"}]}"#, true),
      // A group's; a topic's or a larger group's; one that has no devices.
      (#"{"message_id":"m","success":0,"failure":1,"failed_registration_ids":["r"]}"#, false),
      (#"{"message_id":"m","success":1,"failure":1,"failed_registration_ids":["r"]}"#, true),
      (#"{"message_id":"m","success":0,"failure":2000}"#, true), (#"{"message_id":"m","success":0,"failure":0}"#, true),
      ("no result", true),
    ])
  func final(body: String, isFinal: Bool) {
    #expect(SendDesk.Outcome.result(Array(body.utf8)).isFinal == isFinal)
  }

  @Test("what the broker has taken is final, and nothing else that isn't a result")
  func others() {
    #expect(SendDesk.Outcome.accepted.isFinal)
    for outcome in [SendDesk.Outcome.refused(""), .unknown(""), .reused] { #expect(!outcome.isFinal) }
  }
}
