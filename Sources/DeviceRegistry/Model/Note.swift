/// What is to be noted of a message, of content, or of a request with an idempotency key. Those that come together share a transaction.
public enum Note: Sendable {
  /// Answered with the badge that the message has on each device, counted once for a device and message however often it is asked for; nil for
  /// a token that isn't registered.
  case badges(BadgeCount)
  /// Keeps a message's id for acknowledgements that name it by its key.
  case message([UInt8])
  /// Keeps content, or what is left of its life is made longer. Answered with the name of its page, the same each time.
  case page(ContentPage)
  /// Takes a request in hand, until a time. Answered with what is known under this name, nil where the request is the caller's now.
  case claim(name: [UInt8], body: [UInt8], until: Int64)
  /// Says what became of a request; nil forgets one that was not taken. An earlier settlement stands, and is the answer.
  case settle(name: [UInt8], GatewayRequest.State?, until: Int64)

  /// What it adds to a transaction, about as much as the badge of a device.
  package var weight: Int {
    switch self {
    case .badges(let count): max(count.devices.count, 1)
    case .page(let page): 1 + page.content.count / 1_024
    case .message, .claim, .settle: 1
    }
  }

  /// The most that a transaction has of it, unless one alone has more.
  package static let mostTogether = 1_024
}

public enum NoteAnswer: Equatable, Sendable {
  case badges([Int64?])
  case message
  case page([UInt8]?)
  case claim(GatewayRequest?)
  case settle(GatewayRequest.State?)

  /// As whoever called for it knows it.
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
