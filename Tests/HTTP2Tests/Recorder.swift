import TestSupport
import Wire

@testable import HTTP2

/// Notes everything that a client session tells, and optionally keeps it busy.
final class Recorder: ClientSessionHandler {
  var readyCount = 0
  var answers: [Int: Response] = [:]
  var failures: [Int: RequestFailure] = [:]
  /// Tags in the order of their ends; a tag twice is a fault.
  var ends: [Int] = []
  var availableCount = 0
  var goAways: [GoAway] = []
  var drainCount = 0
  var end: TransportEnd?
  var onReady: (() -> Void)?
  var onAnswer: ((Int) -> Void)?
  var onAvailable: (() -> Void)?
  var onFailure: ((Int) -> Void)?

  func sessionReady() {
    readyCount += 1
    onReady?()
  }
  func answersReady(in session: ClientSession) {
    while let (tag, response) = session.nextAnswer() {
      answers[tag] = response
      ends.append(tag)
      onAnswer?(tag)
    }
  }
  func failed(_ tag: Int, _ failure: RequestFailure) {
    failures[tag] = failure
    ends.append(tag)
    onFailure?(tag)
  }
  func streamsAvailable() {
    availableCount += 1
    onAvailable?()
  }
  func goAwayReceived(_ goAway: GoAway) { goAways.append(goAway) }
  func sessionDraining() { drainCount += 1 }
  func sessionEnded(_ reason: TransportEnd) { end = reason }

  func tags(_ failure: RequestFailure) -> [Int] { failures.filter { $0.value == failure }.keys.sorted() }
}

/// A server whose behaviour a test writes as a closure.
final class ScriptedServer: ServerSessionHandler {
  var requests: [ServerRequest] = []
  var violations: [String] = []
  var closed: [Int32: ErrorCode] = [:]
  var end: TransportEnd?
  /// The most streams that were ever open at once.
  var mostStreams = 0
  var onRequest: (ServerRequest, ServerSession) -> Void = { $1.respond($0.stream, status: 200) }

  func requestReceived(_ request: ServerRequest, on session: ServerSession) {
    requests.append(request)
    mostStreams = max(mostStreams, session.streams.count)
    onRequest(request, session)
  }
  func streamClosed(_ stream: Int32, _ code: ErrorCode, on session: ServerSession) { closed[stream] = code }
  func protocolViolated(_ what: String, on session: ServerSession) { violations.append(what) }
  func sessionEnded(_ reason: TransportEnd, of session: ServerSession) { end = reason }
}

/// A client and a server session on one in-memory wire.
final class Conversation {
  let recorder = Recorder()
  let scripted = ScriptedServer()
  let client: ClientSession
  let server: ServerSession
  let pair: MachinePair
  private var values = HeaderValues()

  let template = Conversation.makeTemplate()

  static func makeTemplate() -> HeaderTemplate {
    HeaderTemplate(
      constant: [(":method", "POST"), (":scheme", "https"), (":authority", "push.test"), ("apns-topic", "com.example.app")],
      variable: [":path", "authorization", "apns-id", "apns-collapse-id"], unindexed: ["apns-id", "apns-collapse-id"])
  }

  init(
    client clientConfiguration: ClientConfiguration = .init(), server serverConfiguration: ServerConfiguration = .init(),
    splitting: Splitting = .whole
  ) {
    client = ClientSession(configuration: clientConfiguration, handler: recorder)
    server = ServerSession(configuration: serverConfiguration, handler: scripted)
    pair = MachinePair(client: client, server: server, splitting: splitting)
  }

  func submit(_ tag: Int, body: [UInt8] = Array(#"{"aps":{}}"#.utf8)) {
    values.removeAll()
    values.append(Array("/3/device/\(String(tag, radix: 16))".utf8))
    values.append(Array("bearer abc".utf8))
    values.append(Array("id-\(tag)".utf8))
    values.appendAbsent()
    client.submit(template, body: body, tag: tag, &values)
  }

  func submit(_ tags: Range<Int>) { for tag in tags { submit(tag) } }
}

extension ClientConfiguration {
  static func with(_ change: (inout ClientConfiguration) -> Void) -> ClientConfiguration {
    var configuration = ClientConfiguration()
    change(&configuration)
    return configuration
  }
}

extension ServerConfiguration {
  static func with(_ change: (inout ServerConfiguration) -> Void) -> ServerConfiguration {
    var configuration = ServerConfiguration()
    change(&configuration)
    return configuration
  }
}
