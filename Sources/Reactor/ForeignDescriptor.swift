/// Watches a descriptor that somebody else owns, such as a library's own set of descriptors.
public final class ForeignDescriptor: EventSource {
  private unowned let loop: EventLoop
  private let raw: Int32
  private let readable: () -> Void
  private var watch: Watch?

  /// The loop calls `readable` in each turn in which there is input, until `close`.
  /// - Throws: when the process is out of memory.
  public init(_ raw: Int32, loop: EventLoop, readable: @escaping () -> Void) throws(SystemError) {
    self.loop = loop
    self.raw = raw
    self.readable = readable
    watch = try loop.watch(raw, .input, self)
  }

  /// To be called before the owner closes the descriptor.
  public func close() {
    if let watch { loop.unwatch(watch, raw) }
    watch = nil
  }

  func ready(_ readiness: Readiness) { readable() }
}
