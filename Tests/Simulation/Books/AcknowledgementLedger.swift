import PushCore

/// What devices have said of messages, and what the fleet has made of it.
struct AcknowledgementLedger {
  /// One thing that a device has said.
  struct Said: Hashable {
    enum Event: String { case received = "Received", read = "Read" }

    var app: String
    var token: String
    var messageID: String
    var event: Event

    var text: String { "\(app) \(messageID) \(token) \(event.rawValue)" }
  }

  /// Of each message of theirs, what stands in it.
  private var messages: [String: [Said]] = [:]
  private(set) var said: Set<Said> = []
  /// In how many messages of the queue each stands.
  private var open: [Said: Int] = [:]
  /// The times that receipts told, one for each.
  private(set) var told: [Said: [String]] = [:]
  /// Those that the broker has confirmed.
  private var confirmed: Set<Said> = []
  /// Whose a registration is.
  var tokens: [String: String] = [:]

  mutating func says(_ id: String, _ what: [Said]) {
    messages[id] = what
    said.formUnion(what)
  }

  /// - Returns: false where it can't be read, or names nobody.
  mutating func tells(_ receipt: [UInt8]) -> Bool {
    guard let (what, at) = read(receipt) else { return false }
    told[what, default: []].append(at)
    return true
  }

  mutating func confirms(_ receipt: [UInt8]) {
    if let (what, _) = read(receipt) { confirmed.insert(what) }
  }

  /// A copy of a message is in the queue.
  mutating func came(_ id: String) { for one in messages[id] ?? [] { open[one, default: 0] += 1 } }

  /// One is no longer, as the broker has lost it.
  mutating func dropped(_ id: String) { for one in messages[id] ?? [] { open[one, default: 0] -= 1 } }

  /// A message is acknowledged.
  /// - Returns: what of it the broker has confirmed no receipt of, and no other message will bring one.
  mutating func acknowledged(_ id: String) -> [Said] {
    dropped(id)
    return (messages[id] ?? []).filter { !confirmed.contains($0) && open[$0, default: 0] <= 0 }
  }

  private func read(_ receipt: [UInt8]) -> (Said, at: String)? {
    guard let document = try? JSONDocument(receipt) else { return nil }
    func text(_ name: String) -> String? { document.value(name, of: document.root).map { document.text($0) } }
    guard let event = text("event").flatMap(Said.Event.init), let app = text("app"), let id = text("message_id"),
      let token = text("registration").flatMap({ tokens[$0] }), let at = text("at")
    else { return nil }
    return (Said(app: app, token: token, messageID: id, event: event), at)
  }
}
