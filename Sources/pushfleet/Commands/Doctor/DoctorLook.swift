import Providers
import Reactor

/// A check over the network, with its event loop and its findings.
class DoctorLook {
  let loop: EventLoop
  private(set) var findings: [Finding] = []

  init() throws {
    loop = try EventLoop()
  }

  func report(_ level: Finding.Level, _ subject: String, _ sentence: String, _ remedy: String?) {
    findings.append(Finding(level, subject, sentence, remedy))
  }

  func ask(_ request: HTTPFetch.Request, _ target: DialTarget) -> HTTPFetch.Answer {
    var answer: HTTPFetch.Answer?
    let transport = loop.dial(HTTPFetch(request) { answer = $0 }, to: target)
    return withExtendedLifetime(transport) { wait { answer } }
  }

  /// Turns the loop until there is an outcome. Not for callbacks of the loop.
  func wait<Outcome>(for outcome: () -> Outcome?) -> Outcome {
    var limit = 0.0
    while true {
      loop.turn(waitingAtMost: limit)
      if let outcome = outcome() { return outcome }
      limit = .infinity
    }
  }
}
