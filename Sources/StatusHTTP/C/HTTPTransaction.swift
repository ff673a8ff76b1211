import CMicroHTTPD
import Glibc
import Synchronization

/// One request from its first line until its answer is out. The thread that serves drives it; the answer may come from any other.
///
/// While the answer is awaited the library has laid the connection aside: it reads nothing of it and doesn't count its silence.
public final class HTTPReply: @unchecked Sendable {
  // All but `state` is touched on the thread only that serves.

  enum Step {
    /// The headers are there. Then `body` or `over`.
    case headers
    /// Then `answering` or `over`.
    case body
    /// The handler has the request. Then `over`.
    case answering
    case over
  }

  private struct Aside: @unchecked Sendable {
    let connection: OpaquePointer
    // It ends after everything that was laid aside.
    unowned(unsafe) let server: HTTPServer

    func takeUp() {
      MHD_resume_connection(connection)
      server.hasAnswers = true
    }
  }

  private struct State {
    var answer: HTTPAnswer?
    /// Laid aside by the library, to be taken up again once.
    var aside: Aside?
  }

  var step = Step.headers
  var request: HTTPRequest
  /// More of the body has come than is taken.
  var isTooLong = false
  /// There was no room for its body.
  var isCrowdedOut = false
  /// Nobody will want its body.
  var isUnkept = false
  /// Its body comes in chunks; its connection ends with its answer.
  var isChunked = false
  /// Bytes of its body that count as not whole yet.
  var unfinished = 0
  /// Bytes that have come of it.
  var received = 0
  private let state = Mutex(State())

  init(target: [UInt8]) {
    request = HTTPRequest(method: "", target: target)
  }

  /// Answers the request; only the first answer counts. From any thread.
  public func send(_ answer: HTTPAnswer) {
    let aside = state.withLock { state -> Aside? in
      guard state.answer == nil else { return nil }
      state.answer = answer
      return state.aside
    }
    aside?.takeUp()
  }

  /// Lays the connection aside until there is an answer.
  func await(_ connection: OpaquePointer, of server: HTTPServer) {
    MHD_suspend_connection(connection)
    let aside = Aside(connection: connection, server: server)
    let isAnswered = state.withLock { state in
      state.aside = aside
      return state.answer != nil
    }
    if isAnswered { aside.takeUp() }
  }

  var answer: HTTPAnswer? { state.withLock(\.answer) }
}
