import PushCore

struct Recipient {
  enum State {
    /// Not yet handed to a pool. Becomes sent, failed or postponed.
    case waiting
    /// The registration is being looked up. Becomes waiting, refused or gone.
    case unresolved
    /// The app is gone according to the registry. Becomes failed, without asking the provider.
    case gone
    /// There is no matching pool. Becomes failed when the request is dispatched.
    case refused(Rejection)
    /// On a stream. Becomes delivered, failed, postponed, or waiting if it was certainly not processed.
    case sent
    /// The provider accepted the push. If wanted, `name` is FCM's name or the APNs sandbox's unique id; the `apns-id` follows
    /// from the request.
    case delivered(name: [UInt8])
    case failed(PushError)
    /// To be retried, not before this time in unix milliseconds.
    case postponed(until: Int64)
    /// The same device as an earlier target of the request, whose outcome it shares.
    case sameAs(Int)

    /// A push to it must still be sent.
    var isToBeSent: Bool {
      switch self {
      case .waiting, .postponed: true
      case .unresolved, .gone, .refused, .sent, .delivered, .failed, .sameAs: false
      }
    }

    var isDelivered: Bool { if case .delivered = self { true } else { false } }

    /// When it may be sent again, in unix milliseconds; nil if it isn't postponed.
    var dueAt: Int64? { if case .postponed(let until) = self { until } else { nil } }

    /// The outcome in logs and in the trace; nil if none is noted.
    var outcome: String? {
      switch self {
      case .delivered: "delivered"
      case .failed(let code): code.rawValue
      case .postponed: "put off"
      case .sameAs: "repeated"
      case .waiting, .unresolved, .gone, .refused, .sent: nil
      }
    }
  }

  var platform: Platform
  /// The provider's token or FCM's address (``FCMAddress``). A registered device's token is a slice of the page's rows.
  var token: ArraySlice<UInt8>
  var pool: Int
  var state = State.waiting
  /// The row in the request's devices; -1 for a token in the request.
  var row = -1
  /// The request named the device by an old registration.
  var isOldRegistration = false
  var kind = Kind.device

  enum Kind {
    case device
    /// A broadcast channel of APNs: the token is its id.
    case channel
    /// FCM topics: the token is their address.
    case topics
  }

  /// The part of the token that distinguishes the device from others of its platform.
  var identity: ArraySlice<UInt8> { platform.identity(of: token) }
}

/// A group of a request's recipients with the same translation.
struct PushWay: Hashable {
  let platform: Platform
  /// -1 for web push, whose translation is the same for each of its many pools.
  let pool: Int
  let isChannel: Bool
}

extension InFlight {
  /// The way of a recipient's push.
  func way(_ index: Int) -> PushWay {
    let platform = self.recipients[index].platform
    return PushWay(
      platform: platform, pool: platform == .webpush ? -1 : self.recipients[index].pool,
      isChannel: self.recipients[index].kind == .channel)
  }

  /// The ways of pushes to be sent, without duplicates.
  var waysToSend: [PushWay] {
    var ways: [PushWay] = []
    for index in self.recipients.indices where self.recipients[index].state.isToBeSent {
      let way = way(index)
      if !ways.contains(way) { ways.append(way) }
    }
    return ways
  }
}
