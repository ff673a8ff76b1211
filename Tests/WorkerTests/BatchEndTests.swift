import Testing

@testable import Worker

@Suite("The end of a batch")
struct BatchEndTests {
  @Test("is reported for all shards together, after each shard has found all queues empty")
  func together() {
    let batch = BatchEnd(shards: 3)
    #expect(!batch.note(0, isEmpty: true) && !batch.note(1, isEmpty: true) && !batch.note(0, isEmpty: true))
    // The third shard has a request in hand. Its copy for the ladder may go to another shard.
    #expect(!batch.note(2, isEmpty: false))
    #expect(!batch.note(2, isEmpty: true) && !batch.note(0, isEmpty: true))
    #expect(batch.note(1, isEmpty: true))
    // A shard that is busy again after the end must not wait alone.
    #expect(batch.note(0, isEmpty: false) && batch.note(2, isEmpty: true))
  }

  @Test("is reported for a single shard as soon as it finds all queues empty")
  func alone() {
    let batch = BatchEnd(shards: 1)
    #expect(!batch.note(0, isEmpty: false) && batch.note(0, isEmpty: true))
  }
}
