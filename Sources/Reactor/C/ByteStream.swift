import CLinux
import Glibc
import TLS
import Wire

/// Reads and writes an established socket, plain or with TLS.
final class ByteStream {
  typealias Condition = TLSSession.ReadCondition
  enum Written: Equatable {
    case all
    /// The kernel's buffer is full, or TLS must read first.
    case blocked
    case failed(TransportEnd)
  }

  private let descriptor: Descriptor
  /// Set before the first byte is read or written.
  var tls: TLSSession?

  init(_ descriptor: consuming Descriptor) {
    self.descriptor = descriptor
  }

  var raw: Int32 { descriptor.raw }
  /// True if TLS's buffers have bytes, which epoll does not see.
  var hasBufferedInput: Bool { tls?.hasPending ?? false }
  /// True if a TLS read must write first.
  var readWantsOutput: Bool { tls?.readWantsOutput ?? false }

  /// Reads available bytes into the buffer. They count even if the condition is an end.
  func read(into buffer: ReadBuffer) -> (count: Int, condition: Condition) {
    if let tls { return tls.read(into: buffer.storage) }
    while true {
      let count = recv(raw, buffer.storage.baseAddress, buffer.storage.count, 0)
      if count > 0 { return (count, count == buffer.storage.count ? .more : .drained) }
      if count == 0 { return (0, .ended) }
      if errno == EINTR { continue }
      if errno == EAGAIN { return (0, .drained) }
      return (0, .failed(.failed(SystemError("recv").description)))
    }
  }

  /// Writes bytes of the buffer until the kernel's is full.
  func write(_ output: inout OutputBuffer) -> Written {
    while !output.isEmpty {
      switch writeSome(output) {
      case .count(let count): output.take(count)
      case .blocked: return .blocked
      case .failed(let end): return .failed(end)
      }
    }
    return .all
  }

  private func writeSome(_ output: borrowing OutputBuffer) -> TLSSession.WriteStep {
    let head = output.head
    return output.bytes.withUnsafeBytes { all in
      let bytes = UnsafeRawBufferPointer(rebasing: all[head...])
      if let tls { return tls.write(bytes) }
      while true {
        let count = send(raw, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        if count >= 0 { return .count(count) }
        if errno == EINTR { continue }
        if errno == EAGAIN { return .blocked }
        return .failed(.failed(SystemError("send").description))
      }
    }
  }

  /// The kernel's reason for an error or hang-up event.
  func fault() -> TransportEnd {
    let code = Socket.pendingError(raw)
    return .failed(code == 0 ? "the connection hung up" : SystemError.text(code))
  }

  func finishWriting() {
    tls?.sendCloseNotification()
    Socket.finishWriting(raw)
  }

  /// Reads once and discards the bytes. Returns true once the peer has closed or failed.
  func discardInput(_ buffer: ReadBuffer) -> Bool {
    let count = recv(raw, buffer.storage.baseAddress, buffer.storage.count, 0)
    return count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)
  }
}
