import Testing

@testable import Worker

@Suite("The end of a batch")
struct BatchEndTests {
  @Test("comes for all shards at once, and not before each has found everything empty since one was busy")
  func together() {
    let batch = BatchEnd(shards: 3)
    #expect(!batch.note(0, isEmpty: true) && !batch.note(1, isEmpty: true) && !batch.note(0, isEmpty: true))
    // The third one has something in hand, whose copy for the ladder the others may get.
    #expect(!batch.note(2, isEmpty: false))
    #expect(!batch.note(2, isEmpty: true) && !batch.note(0, isEmpty: true))
    #expect(batch.note(1, isEmpty: true))
    // What comes now comes after the end: a shard that waited on would wait alone.
    #expect(batch.note(0, isEmpty: false) && batch.note(2, isEmpty: true))
  }

  @Test("comes for a single shard as soon as it says so")
  func alone() {
    let batch = BatchEnd(shards: 1)
    #expect(!batch.note(0, isEmpty: false) && batch.note(0, isEmpty: true))
  }
}
