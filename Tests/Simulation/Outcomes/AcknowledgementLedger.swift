import PushCore

/// The acknowledgements of devices and the fleet's receipts for them.
struct AcknowledgementLedger {
  struct Said: Hashable {
    enum Event: String { case received = "Received", read = "Read" }

    var app: String
    var token: String
    var messageID: String
    var event: Event

    var text: String { "\(app) \(messageID) \(token) \(event.rawValue)" }
  }

  /// The acknowledgements in each message.
  private var messages: [String: [Said]] = [:]
  private(set) var said: Set<Said> = []
  /// For each acknowledgement, the number of its messages in the queue.
  private var open: [Said: Int] = [:]
  /// The times in receipts, one for each receipt.
  private(set) var told: [Said: [String]] = [:]
  /// Acknowledgements whose receipt the broker has confirmed.
  private var confirmed: Set<Said> = []
  /// The token of each registration.
  var tokens: [String: String] = [:]

  mutating func says(_ id: String, _ what: [Said]) {
    messages[id] = what
    said.formUnion(what)
  }

  /// - Returns: false if the receipt can't be read or names an unknown registration.
  mutating func tells(_ receipt: [UInt8]) -> Bool {
    guard let (what, at) = read(receipt) else { return false }
    told[what, default: []].append(at)
    return true
  }

  mutating func confirms(_ receipt: [UInt8]) {
    if let (what, _) = read(receipt) { confirmed.insert(what) }
  }

  /// A copy of a message entered the queue.
  mutating func came(_ id: String) { for one in messages[id] ?? [] { open[one, default: 0] += 1 } }

  /// The broker has lost a copy.
  mutating func dropped(_ id: String) { for one in messages[id] ?? [] { open[one, default: 0] -= 1 } }

  /// A message is acknowledged.
  /// - Returns: its acknowledgements that have no confirmed receipt and are in no other queued message.
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
