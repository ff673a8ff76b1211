import Wire

/// When publications have been refused for so long that another connection is tried: a RabbitMQ channel that has met a full queue may
/// go on refusing by itself when the queue has room again.
struct Renewal {
  /// Seconds of refusals until another connection, the longer the more there have been.
  var pause: Backoff
  /// nil while nothing is refused.
  private var due: MonotonicTime?

  init(pause: Backoff = Backoff(base: 10, cap: 300)) { self.pause = pause }

  /// Another connection is due.
  /// - Returns: true once, then not before the next pause is over.
  mutating func refused(_ time: Turn) -> Bool {
    if let due, time.now < due { return false }
    defer { due = time.now.advanced(bySeconds: pause.next(using: &time.random)) }
    return due != nil
  }

  /// What was refused is taken again.
  mutating func reset() {
    due = nil
    pause.reset()
  }
}
