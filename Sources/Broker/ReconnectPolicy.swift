import Wire

/// Decides when lasting refusals require a new connection: a RabbitMQ channel may keep refusing after a full queue has room
/// again.
struct ReconnectPolicy {
  /// Pauses between new connections; they grow.
  var pause: Backoff
  private var due: MonotonicTime?

  init(pause: Backoff = Backoff(base: 10, cap: 300)) { self.pause = pause }

  /// Records a refusal.
  /// - Returns: true if a new connection is due. Then false until the next pause is over.
  mutating func refused(_ time: Turn) -> Bool {
    if let due, time.now < due { return false }
    defer { due = time.now.advanced(bySeconds: pause.next(using: &time.random)) }
    return due != nil
  }

  mutating func reset() {
    due = nil
    pause.reset()
  }
}
