/// A small record for a message, content, or a request with an idempotency key. Notes that arrive together share a transaction.
public enum Note: Sendable {
  /// Counts a message once per device. The answer has the message's badge on each device; nil for an unregistered token.
  case badges(BadgeCount)
  /// Stores a message id for acknowledgements that use its key.
  case message([UInt8])
  /// Stores content or extends its lifetime. The answer is the name of its page, always the same.
  case page(ContentPage)
  /// Claims a request until a time. The answer is the existing record of this name, or nil if the claim succeeded.
  case claim(name: [UInt8], message: [UInt8], body: [UInt8], until: Int64)
  /// Stores the outcome of a request; nil removes one that was not accepted. An earlier outcome stays and is the answer. A late
  /// result replaces an acceptance.
  case settle(name: [UInt8], GatewayRequest.State?, until: Int64, isLate: Bool = false)

  /// Cost in a transaction; 1 is about one device's badge.
  package var weight: Int {
    switch self {
    case .badges(let count): max(count.devices.count, 1)
    case .page(let page): 1 + page.content.count / 1_024
    case .message, .claim, .settle: 1
    }
  }

  /// Maximum weight per transaction, unless a single note exceeds it.
  package static let mostTogether = 1_024
}

public enum NoteAnswer: Equatable, Sendable {
  case badges([Int64?])
  case message
  case page([UInt8]?)
  case claim(GatewayRequest?)
  case settle(GatewayRequest.State?)

  package var value: any Sendable {
    switch self {
    case .badges(let badges): badges
    case .message: ()
    case .page(let name): name as any Sendable
    case .claim(let known): known as any Sendable
    case .settle(let state): state as any Sendable
    }
  }
}
