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
    #expect(try FileContents.read(path).isEmpty)
    let raw = open(path, O_RDWR)
    #expect(throws: SystemError("read", code: ETIMEDOUT)) { try FileContents.read(path, patience: 50) }
    #expect(write(raw, "abc", 3) == 3)
    // Keeps the bytes when the writer closes.
    let reader = open(path, O_RDONLY | O_NONBLOCK)
    defer { close(reader) }
    close(raw)
    #expect(try FileContents.read(path, patience: 50) == Array("abc".utf8))
  }
}
