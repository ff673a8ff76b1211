import Foundation
import Glibc
import Testing

@testable import Reactor

@Suite("Small files")
struct FileContentsTests {
  @Test("A pipe is read until its writer ends, and never blocks for long")
  func pipe() throws {
    let path = NSTemporaryDirectory() + "/pipe-\(UUID())"
    defer { unlink(path) }
    #expect(mkfifo(path, 0o600) == 0)
    #expect(throws: SystemError("read", code: ETIMEDOUT)) { try FileContents.read(path, timeout: 50) }
    Thread.detachNewThread {
      // Waits for the reader.
      let writer = open(path, O_WRONLY)
      write(writer, "abc", 3)
      close(writer)
    }
    #expect(try FileContents.read(path, timeout: 30_000) == Array("abc".utf8))
  }
}
