import PushCore

/// One device of a request.
struct Recipient {
  enum State {
    /// Not yet handed to a pool. Becomes sent, failed or postponed.
    case waiting
    /// Registered, and its device is being looked up. Becomes waiting, refused or gone.
    case unresolved
    /// The registry knows that the app is gone; becomes failed without asking the provider.
    case gone
    /// No pool can take it; becomes failed as soon as the request is dispatched.
    case refused(Rejection)
    /// On a stream. Becomes delivered, failed, postponed, or waiting again when it was certainly not processed.
    case sent
    /// The provider took it; FCM's name, or what APNs' sandbox calls it, where one is wanted. APNs' own id follows from the request.
    case delivered(name: [UInt8])
    case failed(PushError)
    /// To be tried again, not before this unix millisecond.
    case postponed(until: Int64)
    /// The same device as an earlier target of the request, whose outcome it shares.
    case sameAs(Int)

    /// A push to it is still to go out.
    var isToBeSent: Bool {
      switch self {
      case .waiting, .postponed: true
      case .unresolved, .gone, .refused, .sent, .delivered, .failed, .sameAs: false
      }
    }
  }

  var platform: Platform
  /// The provider's own token, or what stands in its place with FCM (``FCMAddress``); of a registered device, where it lies among the
  /// rows of its page.
  var token: ArraySlice<UInt8>
  /// The pool that reaches it.
  var pool: Int
  var state = State.waiting
  /// Its row in the request's devices; -1 for a token that came with the request.
  var row = -1
  /// The request named the device by a registration that has a newer one.
  var isOldRegistration = false
  /// What the provider says of it concerns a device, or not.
  var kind = Kind.device

  enum Kind {
    case device
    /// A broadcast channel of APNs: the token is its id.
    case channel
    /// Topics that FCM keeps: the token is their address.
    case topics
  }
}

/// Recipients of one request that get the same translation.
struct PushWay: Hashable {
  let platform: Platform
  let pool: Int
  let isChannel: Bool
}

extension PushWay {
  init(_ recipient: Recipient) {
    self.init(platform: recipient.platform, pool: recipient.pool, isChannel: recipient.kind == .channel)
  }
}

extension InFlight {
  /// Of the pushes that are still to go out, each once.
  var waysToSend: [PushWay] {
    self.recipients.reduce(into: []) { ways, recipient in
      guard recipient.state.isToBeSent else { return }
      let way = PushWay(recipient)
      if !ways.contains(way) { ways.append(way) }
    }
  }
}
