import Wire

/// How a shard stands.
package struct ShardReport: Sendable {
  /// When the shard's loop had its last turn, about.
  var at: MonotonicTime
  var counters = Counters()
  /// Both connections to the broker are up.
  var isReady = false
  /// It takes nothing more.
  var isDraining = false
  /// Requests and changes of the registry in hand.
  package var held = 0
  /// Requests taken beyond what there is room for.
  var ahead = 0
  /// Publications not yet confirmed, and those of them that wait for queues which confirm nothing.
  var unconfirmed = 0
  var stuck = 0
  /// Pushes on streams.
  var inFlight = 0
  /// Of each application that has a hold queue.
  var holds: [Hold] = []
  /// Pools that are in trouble, and all of the applications that have a hold queue.
  var pools: [Pool] = []
  /// When certificates end, the soonest first.
  var expiries: [Expiry] = []

  struct Hold: Sendable {
    /// The application's id.
    var app: [UInt8]
    /// Requests ready in its queue, as last counted; nil where they couldn't be.
    var ready: Int?
    /// Of the queue, unacknowledged.
    var inHand = 0
  }

  struct Pool: Sendable {
    /// The credential's.
    var name: String
    var isInTrouble: Bool
  }

  struct Expiry: Sendable {
    /// The credential's.
    var name: String
    /// Unix seconds.
    var notAfter: Int64
  }
}
