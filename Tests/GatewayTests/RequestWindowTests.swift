import Testing
import Wire

@testable import Gateway

@Suite("The window of requests")
struct RequestWindowTests {
  private let key = RequestDigest(Array("k".utf8))
  private let nothing = RequestDigest([])
  private let app = Array("a".utf8)
  private func digest(_ text: String) -> RequestDigest { RequestDigest(Array(text.utf8)) }
  private func time(_ seconds: Double) -> MonotonicTime { MonotonicTime(nanoseconds: 0).advanced(bySeconds: seconds) }

  @Test("lets a repetition of a request under way wait for the same answer; afterwards the request is known for a while")
  func joined() {
    let window = RequestWindow(lifetime: 10)
    window.begin(key, Array("m".utf8), app: app, body: nothing, isSought: true)
    var heard: [[UInt8]] = []
    window.join(key) { id, _ in heard.append(id) }
    for other in window.end(key, .answered(.accepted), at: time(0)) { other(Array("m".utf8), .accepted) }
    #expect(heard == [Array("m".utf8)])
    window.sweep(at: time(9.9))
    #expect(window[key] != nil)
    window.sweep(at: time(10))
    #expect(window[key] == nil)
  }

  @Test("forgets a refused request at once; a request that may have been accepted keeps its id for the next attempt")
  func refused() {
    let window = RequestWindow(lifetime: 10)
    window.begin(key, [1], app: app, body: nothing, isSought: true)
    _ = window.end(key, nil, at: time(0))
    #expect(window[key] == nil)
    window.begin(key, [2], app: app, body: nothing, isSought: true)
    _ = window.end(key, .again, at: time(0))
    window.resume(key, as: [2])
    window.sweep(at: time(20))
    #expect(window[key]?.messageID == [2])
    _ = window.end(key, .answered(.accepted), at: time(20))
    window.sweep(at: time(31))
    #expect(window[key] == nil)
  }

  @Test("knows a failed request under the id of its next attempt")
  func failed() {
    let window = RequestWindow(lifetime: 10)
    window.begin(key, [1], app: app, body: nothing, isSought: true)
    _ = window.end(key, .failed(.result([7])), at: time(0))
    window.resume(key, as: [2])
    _ = window.end(key, .answered(.accepted), at: time(5))
    window.sweep(at: time(14))
    #expect(window[key]?.messageID == [2])
    window.sweep(at: time(15))
    #expect(window[key] == nil)
  }

  @Test("is limited in number and in bytes, and drops the oldest first")
  func bounded() {
    let window = RequestWindow(lifetime: 1_000)
    for number in 0..<20_000 {
      let key = digest(String(number))
      window.begin(key, [], app: app, body: nothing, isSought: true)
      _ = window.end(key, .answered(.accepted), at: time(0))
    }
    #expect(window[digest("0")] == nil && window[digest("19999")] != nil)
    let large = [UInt8](repeating: 0, count: 9 << 20)
    for name in ["a", "b"] {
      window.begin(digest(name), [], app: app, body: nothing, isSought: true)
      _ = window.end(digest(name), .answered(.result(large)), at: time(1))
    }
    #expect(window[digest("a")] == nil)
  }

  @Test("knows a message of an application by its id, also a result that comes after the answer")
  func messages() {
    let window = RequestWindow(lifetime: 10)
    func result(_ id: UInt8, app: String = "a") -> [UInt8]? {
      switch window.state(ofMessage: [id], app: Array(app.utf8)) {
      case .answered(.result(let body)), .failed(.result(let body)): body
      default: nil
      }
    }
    window.begin(key, [1], app: app, body: nothing, isSought: true)
    window.learn(key, .result([5]))
    #expect(result(1) == nil)
    _ = window.end(key, .answered(.accepted), at: time(0))
    window.learn(key, .result([5]))
    window.learn(key, .result([6]))
    #expect(result(1) == [5] && result(1, app: "b") == nil && result(2) == nil)
    window.sweep(at: time(10))
    #expect(window.state(ofMessage: [1], app: app) == nil)
    // A failed request has another id in its next attempt.
    window.begin(key, [1], app: app, body: nothing, isSought: true)
    _ = window.end(key, .failed(.result([7])), at: time(10))
    #expect(result(1) == [7])
    window.resume(key, as: [2])
    _ = window.end(key, .answered(.result([8])), at: time(11))
    #expect(result(1) == nil && result(2) == [8])
  }
}
