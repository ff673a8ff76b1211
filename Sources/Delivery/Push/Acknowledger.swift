import AMQP

/// The broker's consumers, as the pipeline sees them.
package protocol Acknowledger: AnyObject {
  func acknowledge(_ token: DeliveryToken)
  var isReadingPaused: Bool { get set }
  /// Starts or stops consuming the lanes.
  func takeLanes(_ takes: Bool)
  /// - Parameters:
  ///   - fitting: the number of requests for which there is memory, at their recent size.
  ///   - ahead: the number of deliveries to read ahead beyond that.
  func adjustPrefetch(fitting: Int, ahead: Int)
}
