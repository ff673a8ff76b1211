import Providers
import Reactor

/// A check over the network, with its event loop and its findings.
class DoctorLook {
  let loop: EventLoop
  private(set) var findings: [Finding] = []
  private var call: HTTPFetch?
  private var transport: AnyObject?

  init() throws {
    loop = try EventLoop()
  }

  func run(_ begin: @escaping () -> Void) -> [Finding] {
    loop.schedule(after: 0, begin)
    loop.run()
    return findings
  }

  func report(_ level: Finding.Level, _ subject: String, _ sentence: String, _ remedy: String?) {
    findings.append(Finding(level, subject, sentence, remedy))
  }

  /// - Parameter completion: called from the loop, after the call has ended.
  func ask(_ request: HTTPFetch.Request, _ target: DialTarget, _ completion: @escaping (HTTPFetch.Answer) -> Void) {
    let call = HTTPFetch(request) { [weak self] answer in self?.loop.schedule(after: 0) { completion(answer) } }
    self.call = call
    transport = loop.dial(call, to: target)
  }
}
