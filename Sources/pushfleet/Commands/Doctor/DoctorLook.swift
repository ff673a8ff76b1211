import Broker
import Delivery
import Providers
import Reactor
import Settings

/// A look at what is reached by the network: a loop, what is asked on it, and what was found.
class DoctorLook {
  let loop: EventLoop
  let dialer: LoopDialer
  private(set) var findings: [Finding] = []
  private var call: HTTPCall?
  private var transport: AnyObject?

  init() throws {
    loop = try EventLoop()
    dialer = LoopDialer(loop: loop)
  }

  /// What is found until the loop is stopped.
  func run(_ begin: @escaping () -> Void) -> [Finding] {
    loop.schedule(after: 0, begin)
    loop.run()
    return findings
  }

  func report(_ level: Finding.Level, _ subject: String, _ sentence: String, _ remedy: String?) {
    findings.append(Finding(level, subject, sentence, remedy))
  }

  /// - Parameter completion: not within the call of the one that has ended.
  func ask(_ request: HTTPCall.Request, _ target: DialTarget, _ completion: @escaping (HTTPCall.Answer) -> Void) {
    let call = HTTPCall(request) { [weak self] answer in self?.loop.schedule(after: 0) { completion(answer) } }
    self.call = call
    transport = dialer.dial(call, to: target)
  }
}
