import Foundation
import Glibc
import Testing

@testable import Reactor

/// A pipe of one page.
private final class SmallPipe {
  private static let setPipeSize: Int32 = 1031
  let reading: Int32
  let writing: Int32

  init() {
    var ends: [Int32] = [0, 0]
    precondition(pipe(&ends) == 0 && fcntl(ends[1], Self.setPipeSize, 4096) == 4096)
    (reading, writing) = (ends[0], ends[1])
  }

  /// Reads until the text is as it should be; what there was when nothing more came for a while.
  func read(until isDone: (String) -> Bool) -> String {
    var text = ""
    var chunk = [UInt8](repeating: 0, count: 65_536)
    var wait = pollfd(fd: reading, events: Int16(POLLIN), revents: 0)
    while !isDone(text), poll(&wait, 1, 10_000) == 1 {
      let count = Glibc.read(reading, &chunk, chunk.count)
      guard count > 0 else { break }
      text += String(decoding: chunk[..<count], as: UTF8.self)
    }
    return text
  }

  func read(until mark: String) -> String { read { $0.hasSuffix(mark) } }

  deinit { close(reading) }
}

@Suite("Lines written by a thread of their own")
struct LineWriterTests {
  private func line(_ number: Int, padded length: Int = 100) -> [UInt8] {
    let text = "line \(number) "
    return Array((text + String(repeating: "x", count: max(length - text.utf8.count - 1, 0)) + "\n").utf8)
  }

  @Test(
    "nobody reads: writing returns at once, lines beyond the buffer are counted, and who reads at last gets whole lines and the count"
  )
  func nobodyReads() throws {
    let pipe = SmallPipe()
    let writer = LineWriter(pipe.writing, capacity: 10_000) { Array("missing \($0)\n".utf8) }
    let begin = ContinuousClock.now
    for number in 0..<1000 { writer.write(line(number)) }
    #expect(ContinuousClock.now - begin < .seconds(5))
    writer.flush(seconds: 0.05)
    let dropped = writer.dropped
    #expect((1000 - dropped) * 100 <= 4096 + 20_000 && dropped < 1000)

    let missing = { (text: String) in text.matches(of: /missing (\d+)\n/).reduce(0) { $0 + (Int($1.1) ?? 0) } }
    func written(_ text: String) -> [Substring] { text.split(separator: "\n").filter { !$0.hasPrefix("missing ") } }
    let text = pipe.read { $0.hasSuffix("\n") && missing($0) == dropped && written($0).count >= 1000 - dropped }
    let lines = written(text)
    #expect(missing(text) == dropped && lines.count == 1000 - dropped)
    #expect(lines.allSatisfy { $0.hasPrefix("line ") && $0.utf8.count == 99 }, "\(text.prefix(300))")
    let numbers = lines.compactMap { Int($0.split(separator: " ")[1]) }
    #expect(numbers.first == 0 && zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 })
    // And from then on all are written, in order.
    writer.write(line(2000))
    #expect(pipe.read(until: "x\n").hasPrefix("line 2000 "))
    writer.flush(seconds: 5)
    #expect(writer.dropped == dropped)
  }

  @Test("a wait for a reader who doesn't come is short, and isn't repeated")
  func boundedFlush() throws {
    let pipe = SmallPipe()
    let writer = LineWriter(pipe.writing, capacity: 100_000) { _ in [] }
    for number in 0..<100 { writer.write(line(number)) }
    var begin = ContinuousClock.now
    writer.flush(seconds: 0.2)
    #expect(.milliseconds(190)..<(.seconds(5)) ~= ContinuousClock.now - begin)
    begin = ContinuousClock.now
    for _ in 0..<100 { writer.flush(seconds: 1) }
    #expect(ContinuousClock.now - begin < .seconds(1))
    _ = pipe.read(until: String(decoding: line(99), as: UTF8.self))
  }

  @Test("a line longer than a pipe takes at once arrives whole, between its neighbours")
  func longLine() throws {
    let pipe = SmallPipe()
    let writer = LineWriter(pipe.writing, capacity: 100_000) { _ in [] }
    let lines = [line(0), line(1, padded: 30_000), line(2)]
    for line in lines { writer.write(line) }
    let last = String(decoding: lines[2], as: UTF8.self)
    #expect(pipe.read(until: last) == String(decoding: lines.joined(), as: UTF8.self))
  }

  @Test("a reader who is gone, and a disk that is full, cost lines and nothing else")
  func refused() throws {
    Signals.ignoreBrokenPipe()
    let gone: Int32
    do {
      let pipe = SmallPipe()
      gone = pipe.writing
    }
    for descriptor in [gone, open("/dev/full", O_WRONLY | O_CLOEXEC)] {
      let writer = LineWriter(descriptor, capacity: 10_000) { Array("missing \($0)\n".utf8) }
      for number in 0..<20 { writer.write(line(number)) }
      writer.flush(seconds: 10)
      #expect(writer.dropped == 20)
    }
  }

  @Test("a descriptor that somebody else made non-blocking gets every line all the same")
  func nonBlocking() throws {
    let pipe = SmallPipe()
    _ = fcntl(pipe.writing, F_SETFL, fcntl(pipe.writing, F_GETFL) | O_NONBLOCK)
    let writer = LineWriter(pipe.writing, capacity: 100_000) { _ in [] }
    for number in 0..<200 { writer.write(line(number)) }
    let text = pipe.read(until: String(decoding: line(199), as: UTF8.self))
    #expect(text.split(separator: "\n").count == 200)
    #expect(writer.dropped == 0)
  }

  @Test("portions end at a line's end, and are no larger than what a pipe takes in one piece")
  func portions() {
    var bytes = (0..<500).flatMap { line($0, padded: 10 + $0 % 90) }[...]
    while !bytes.isEmpty {
      let portion = LineWriter.portion(of: bytes)
      #expect(portion.last == UInt8(ascii: "\n") && portion.count <= 4096)
      bytes = bytes[portion.endIndex...]
    }
    #expect(Array(LineWriter.portion(of: Array("no end".utf8)[...])) == Array("no end".utf8))
  }
}
