import Reactor

/// Lets a command without an event loop check for SIGINT and SIGTERM between its steps.
final class Interruption {
  private let loop: EventLoop
  private var signals: Signals?
  private var count = 0

  init() throws {
    loop = try EventLoop()
    signals = try Signals(loop: loop, [2, 15]) { [weak self] _ in self?.count += 1 }
  }

  deinit { signals?.close() }

  func wait(for input: InputDescriptor) throws(SystemError) {
    var isThere = false
    let watch = try ForeignDescriptor(input.raw, loop: loop) { isThere = true }
    while !isThere, count == 0 { loop.turn(waitingAtMost: 60) }
    watch.close()
  }

  /// - Returns: the available bytes, empty at the end; nil if a signal came first.
  func read(_ input: InputDescriptor, atMost count: Int) throws(SystemError) -> [UInt8]? {
    while !hasCome {
      switch try input.read(atMost: count) {
      case .bytes(let bytes): return bytes
      case .end: return []
      case .notYet: try wait(for: input)
      }
    }
    return nil
  }

  private static let piece = 1 << 20

  /// Reads to the end, up to `most` bytes.
  /// - Returns: nil if a signal came before the end.
  func readAll(_ input: InputDescriptor, atMost most: Int) throws(SystemError) -> [UInt8]? {
    var bytes: [UInt8] = []
    while bytes.count < most {
      guard let chunk = try read(input, atMost: min(Self.piece, most - bytes.count)) else { return nil }
      if chunk.isEmpty { break }
      bytes += chunk
    }
    return bytes
  }

  var hasCome: Bool {
    loop.turn(waitingAtMost: 0)
    return count > 0
  }
}
