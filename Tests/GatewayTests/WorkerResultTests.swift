import Testing

@testable import Gateway

@Suite("Results of workers")
struct WorkerResultTests {
  @Test(
    "answer the same request as long as they are known, unless nobody was reached for a passing reason",
    arguments: [
      (#"{"success":0,"failure":1,"results":[{"error":"Unavailable"}]}"#, false),
      (#"{"success":0,"failure":2,"results":[{"error":"InternalServerError"},{"error":"DeviceMessageRateExceeded"}]}"#, false),
      (#"{"success":0,"failure":2,"results":[{"error":"Unavailable"},{"error":"NotRegistered"}]}"#, true),
      (#"{"success":1,"failure":1,"results":[{"message_id":"p"},{"error":"Unavailable"}]}"#, true),
      (#"{"success":0,"failure":1,"results":[{"error":"Unknown"}]}"#, true),
      (#"{"success":0,"failure":1,"results":[{"error":"of another version"}]}"#, true),
      // The results of a group; of a topic or a larger group; of one without devices.
      (#"{"message_id":"m","success":0,"failure":1,"failed_registration_ids":["r"]}"#, false),
      (#"{"message_id":"m","success":1,"failure":1,"failed_registration_ids":["r"]}"#, true),
      (#"{"message_id":"m","success":0,"failure":2000}"#, true), (#"{"message_id":"m","success":0,"failure":0}"#, true),
      ("no result", true),
    ])
  func final(body: String, isFinal: Bool) {
    #expect(SendService.Outcome.result(Array(body.utf8)).isFinal == isFinal)
  }

  @Test("are final once the broker has accepted the request; other messages are not")
  func others() {
    #expect(SendService.Outcome.accepted.isFinal)
    for outcome in [SendService.Outcome.refused(""), .unknown(""), .reused] { #expect(!outcome.isFinal) }
  }
}
