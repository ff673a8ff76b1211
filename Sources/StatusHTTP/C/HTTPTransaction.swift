import CMicroHTTPD
import Glibc
import Synchronization

/// One request from its first line until the answer is sent. The serving thread drives it. The answer may come from any thread.
///
/// While the answer is awaited, the library suspends the connection: it doesn't read and doesn't count idle time.
public final class HTTPReply: @unchecked Sendable {
  // Everything except `state` is used on the serving thread only, or under the server's lock.

  enum Step {
    /// The headers are complete. → `body`, `over`.
    case headers
    /// → `answering`, `over`.
    case body
    /// The handler has the request. → `over`.
    case answering
    case over
  }

  /// The library allows any thread to resume a connection.
  private struct Aside: @unchecked Sendable {
    let connection: OpaquePointer
    // The server outlives all suspended connections, and requests whose answers are being sent.
    unowned(unsafe) let server: HTTPServer

    func takeUp() {
      MHD_resume_connection(connection)
      server.hasAnswers = true
    }
  }

  private struct State {
    var answer: HTTPAnswer?
    /// The suspended connection, to be resumed once.
    var aside: Aside?
  }

  var step = Step.headers
  var request: HTTPRequest
  /// The answer to a body that is too large or has no room.
  var refusal: HTTPAnswer?
  /// True if the handler doesn't want the body.
  var isUnkept = false
  /// True if the body is chunked. The connection closes with the answer then.
  var isChunked = false
  /// Bytes counted as incomplete body.
  var unfinished = 0
  /// True if the connection has been shut down during the body, and the library hasn't noticed yet.
  var isShutDown = false
  /// Received bytes of the body.
  var received = 0
  private let state = Mutex(State())

  init(target: [UInt8]) {
    request = HTTPRequest(method: "", target: target)
  }

  /// Answers the request. Only the first answer counts. From any thread.
  public func send(_ answer: HTTPAnswer) {
    // Under the lock: when the connection goes on, the request can end, and the server after it.
    state.withLock { state in
      guard state.answer == nil else { return }
      state.answer = answer
      state.aside?.takeUp()
    }
  }

  /// Waits until no thread uses the connection. The server may be released afterwards.
  func end() { state.withLock { $0.aside = nil } }

  /// Suspends the connection until there is an answer.
  func await(_ connection: OpaquePointer, of server: HTTPServer) {
    MHD_suspend_connection(connection)
    state.withLock { state in
      state.aside = Aside(connection: connection, server: server)
      if state.answer != nil { state.aside?.takeUp() }
    }
  }

  var answer: HTTPAnswer? { state.withLock(\.answer) }
}
