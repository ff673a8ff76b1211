/// How the hold queue of an application stands.
package struct HoldReport: Sendable {
  /// The application's id.
  package var app: [UInt8]
  /// Requests ready in its queue, as last counted; nil where they couldn't be.
  package var ready: Int?
  /// Of the queue, unacknowledged.
  package var inHand: Int

  package init(app: [UInt8], ready: Int?, inHand: Int = 0) {
    self.app = app
    self.ready = ready
    self.inHand = inHand
  }
}
