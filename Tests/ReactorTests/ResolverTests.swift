import Foundation
import Synchronization
import Testing
import Wire

@testable import Reactor

@Suite("The resolver")
struct ResolverTests {
  /// Look-ups that wait until the test lets them go on.
  private final class Names: Sendable {
    let begun = DispatchSemaphore(value: 0)
    let mayEnd = DispatchSemaphore(value: 0)
    let answered = DispatchSemaphore(value: 0)
    let asked = Mutex<[String]>([])
    let failures = Atomic<Int>(0)
    let seconds = Atomic<Int>(0)

    func lookUp(_ endpoint: Endpoint) -> Resolution {
      asked.withLock { $0.append(endpoint.host) }
      begun.signal()
      mayEnd.wait()
      return .success([])
    }

    func makeResolver() -> Resolver {
      Resolver(
        now: { MonotonicTime(nanoseconds: 0).advanced(bySeconds: Double(self.seconds.load(ordering: .relaxed))) },
        lookUp: { self.lookUp($0) })
    }

    func answer(_ resolution: Resolution) {
      if case .failure = resolution { failures.add(1, ordering: .relaxed) }
      answered.signal()
    }

    func wait(_ semaphore: DispatchSemaphore, _ count: Int) -> Bool {
      (0..<count).allSatisfy { _ in semaphore.wait(timeout: .now() + 20) == .success }
    }
  }

  private func endpoint(_ number: Int) -> Endpoint { Endpoint(host: "host\(number).test", port: 443) }

  @Test("looks up four names at a time, and every name once for all who ask meanwhile")
  func bounded() {
    let names = Names()
    let resolver = names.makeResolver()
    for number in 0..<100 { resolver.ask(endpoint(number % 10)) { names.answer($0) } }
    #expect(names.wait(names.begun, 4))
    #expect(names.asked.withLock { $0.count } == 4)
    for _ in 0..<10 { names.mayEnd.signal() }
    #expect(names.wait(names.answered, 100))
    #expect(names.asked.withLock { Set($0).count == 10 && $0.count == 10 } && names.failures.load(ordering: .relaxed) == 0)
    resolver.ask(endpoint(0)) { names.answer($0) }
    names.mayEnd.signal()
    #expect(names.wait(names.answered, 1) && names.asked.withLock { $0.count } == 11)
  }

  @Test("lets nobody wait for longer than a connection may take, and looks nothing up for nobody")
  func patience() {
    let names = Names()
    let resolver = names.makeResolver()
    for number in 0..<6 { resolver.ask(endpoint(number)) { names.answer($0) } }
    #expect(names.wait(names.begun, 4))
    names.seconds.store(11, ordering: .relaxed)
    // Host 0 hangs; host 5 is asked for again.
    resolver.ask(endpoint(0)) { names.answer($0) }
    resolver.ask(endpoint(5)) { names.answer($0) }
    #expect(names.wait(names.answered, 2) && names.failures.load(ordering: .relaxed) == 2)
    for _ in 0..<5 { names.mayEnd.signal() }
    #expect(names.wait(names.answered, 6))
    #expect(names.failures.load(ordering: .relaxed) == 3)
    #expect(names.asked.withLock { Set($0) } == Set([0, 1, 2, 3, 5].map { endpoint($0).host }))
  }
}
