import AMQP

/// The consuming side of the broker, as the pipeline sees it.
package protocol Acknowledger: AnyObject {
  func acknowledge(_ token: DeliveryToken)
  var isReadingPaused: Bool { get set }
  /// Whether requests are taken from the lanes.
  func takeLanes(_ takes: Bool)
  /// - Parameters:
  ///   - fitting: how many requests of the size that they have of late may be in hand.
  ///   - ahead: how many deliveries are to be taken beyond what there is room for.
  func adjustPrefetch(fitting: Int, ahead: Int)
}
