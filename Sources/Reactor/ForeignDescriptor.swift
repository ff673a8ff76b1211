/// Watches a descriptor with another owner, such as a library's descriptor set.
public final class ForeignDescriptor: EventSource {
  private unowned let loop: EventLoop
  private let raw: Int32
  private let readable: () -> Void
  private var watch: Watch?

  /// Calls `readable` in each turn with input, until `close`.
  public init(_ raw: Int32, loop: EventLoop, readable: @escaping () -> Void) throws(SystemError) {
    self.loop = loop
    self.raw = raw
    self.readable = readable
    watch = try loop.watch(raw, .input, self)
  }

  /// Call before the owner closes the descriptor.
  public func close() {
    if let watch { loop.unwatch(watch, raw) }
    watch = nil
  }

  func ready(_ readiness: Readiness) { readable() }
}
