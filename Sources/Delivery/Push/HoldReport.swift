/// The state of an application's hold queue.
package struct HoldReport: Sendable {
  package var app: [UInt8]
  /// Ready requests in its queue, as last counted; nil if unknown.
  package var ready: Int?
  package var inHand: Int

  package init(app: [UInt8], ready: Int?, inHand: Int = 0) {
    self.app = app
    self.ready = ready
    self.inHand = inHand
  }
}
