import Wire

/// Keeps a finished connection until the peer has closed too, at most two seconds. Closing with unread input would reset the
/// connection, and the reset could overtake the last bytes sent (RFC 9112 §9.6).
final class Lingering: EventSource {
  private unowned let loop: EventLoop
  private let stream: ByteStream
  private var watch: Watch?
  private var timer: TimerToken?

  static func start(_ stream: ByteStream, on loop: EventLoop) {
    let lingering = Lingering(stream, loop)
    do throws(SystemError) {
      lingering.watch = try loop.watch(stream.raw, [.input, .peerShutdown], lingering)
    } catch { return }
    lingering.timer = loop.schedule(after: 2) { [weak lingering] in lingering?.finish() }
    loop.own(lingering)
  }

  private init(_ stream: ByteStream, _ loop: EventLoop) {
    self.stream = stream
    self.loop = loop
  }

  func ready(_ readiness: Readiness) {
    if stream.discardInput(loop.readBuffer) { finish() }
  }

  private func finish() {
    if let watch { loop.unwatch(watch, stream.raw) }
    watch = nil
    if let timer { loop.cancel(timer) }
    loop.disown(self)
  }
}
