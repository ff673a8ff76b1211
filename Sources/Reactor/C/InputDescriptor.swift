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
