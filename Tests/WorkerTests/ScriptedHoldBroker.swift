import AMQP
import Broker

@testable import Delivery

/// Answers when the test says so.
final class ScriptedHoldBroker: HoldBroker {
  var canAsk = true
  var declared: [String] = []
  var consumed: [String] = []
  var sought: [(app: String, answer: (Bool?) -> Void)] = []
  var counted: [(app: String, answer: (Int?) -> Void)] = []
  var declarations: [(Bool?) -> Void] = []
  var inHand = 0

  func declareHold(_ app: String, _ completion: @escaping (Bool?) -> Void) {
    declared.append(app)
    declarations.append(completion)
  }
  func findHold(_ app: String, _ completion: @escaping (Bool?) -> Void) { sought.append((app, completion)) }
  func countHeld(_ app: String, _ completion: @escaping (Int?) -> Void) { counted.append((app, completion)) }
  func consumeHold(_ app: String, index: Int) { consumed.append(app) }
  func flow(_ app: Int) -> HoldFeed.Flow { .probes }
  func setFlow(_ flow: HoldFeed.Flow, _ app: Int, isForProbe: Bool) {}
  func acknowledgeHeld(_ token: DeliveryToken, _ app: Int) {}
  func heldInHand(_ app: Int) -> Int { inHand }
  var heldInHand: Int { inHand }
}
