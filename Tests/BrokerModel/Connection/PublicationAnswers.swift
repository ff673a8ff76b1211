/// The confirms of one channel: publications without an answer, and answers to send.
struct PublicationAnswers {
  /// True if the client has enabled confirms.
  var isWanted = false
  private var next: UInt64 = 1
  /// Publications without an answer, in order.
  private var open: [UInt64] = []
  private var acks: [UInt64] = []
  private var nacks: [UInt64] = []

  /// The number of a new publication; nil without confirms.
  mutating func published() -> UInt64? {
    guard isWanted else { return nil }
    defer { next += 1 }
    open.append(next)
    return next
  }

  mutating func settle(_ sequence: UInt64, isAck: Bool) {
    guard let index = open.firstIndex(of: sequence) else { return }
    open.remove(at: index)
    if isAck { acks.append(sequence) } else { nacks.append(sequence) }
  }

  /// The frames to send, combined like RabbitMQ's (`coalesce_and_send` in rabbit_channel). One frame confirms all numbers below
  /// the first one that has no answer or the other answer. The others get one frame each.
  mutating func take() -> [ServerMethod] {
    guard !acks.isEmpty || !nacks.isEmpty else { return [] }
    defer {
      acks = []
      nacks = []
    }
    let first = open.first ?? .max
    return Self.frames(nacks, below: min(first, acks.min() ?? .max)) { .nack(tag: $0, multiple: $1) }
      + Self.frames(acks, below: min(first, nacks.min() ?? .max)) { .ack(tag: $0, multiple: $1) }
  }

  private static func frames(
    _ sequences: [UInt64], below cutoff: UInt64, as method: (UInt64, Bool) -> ServerMethod
  ) -> [ServerMethod] {
    let sorted = sequences.sorted()
    let together = sorted.last { $0 < cutoff }.map { [method($0, true)] } ?? []
    return together + sorted.filter { $0 >= cutoff }.map { method($0, false) }
  }
}
