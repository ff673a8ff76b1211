import Glibc

/// Input that arrives at any time: standard input, or a file.
public struct InputDescriptor: Sendable {
  public enum Chunk {
    case bytes([UInt8])
    case end
    /// Nothing is available now. Never the case for a regular file.
    case notYet
  }

  public let raw: Int32

  public init(_ raw: Int32) { self.raw = raw }

  /// Reads available bytes without waiting.
  public func read(atMost count: Int) throws(SystemError) -> Chunk {
    var question = pollfd(fd: raw, events: Int16(POLLIN), revents: 0)
    guard poll(&question, 1, 0) != 0 else { return .notYet }
    var failure: Int32 = 0
    let chunk = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      var got = -1
      repeat { got = Glibc.read(raw, buffer.baseAddress, count) } while got < 0 && errno == EINTR
      if got < 0 { failure = errno }
      filled = max(got, 0)
    }
    guard failure == 0 else { throw SystemError("read", code: failure) }
    return chunk.isEmpty ? .end : .bytes(chunk)
  }
}

/// Calls its handler once, on the loop, when a descriptor has input or has ended. Confined to the loop's thread.
public final class InputWatch {
  private unowned let loop: EventLoop
  private let raw: Int32
  private var then: (() -> Void)?
  private var watch: Watch?

  /// - Parameter input: not a regular file, which never needs waiting.
  public init(loop: EventLoop, _ input: InputDescriptor, then: @escaping () -> Void) throws(SystemError) {
    self.loop = loop
    raw = input.raw
    self.then = then
    watch = try loop.watch(raw, .input, self)
    loop.own(self)
  }

  public func close() {
    if let watch { loop.unwatch(watch, raw) }
    watch = nil
    then = nil
    loop.disown(self)
  }
}

extension InputWatch: EventSource {
  func ready(_ readiness: Readiness) {
    let then = then
    close()
    then?()
  }
}
