import HTTP2
import Providers

/// A provider that answers as the test says and remembers every request.
final class ScriptedProvider: ServerSessionHandler {
  struct Request {
    let path: String
    let authorization: String
    let body: [UInt8]
    let headers: [HeaderField]
    /// Of the connection it came on, in the order of accepting.
    let connection: Int
    let stream: Int32

    /// The last part of the path: APNs' device token.
    var device: String { path.split(separator: "/").last.map(String.init) ?? "" }
    /// It asks APNs only whether it answers.
    var isCanary: Bool { path == "/3/device/0" }
    /// It asks APNs only whether the credential is taken.
    var asksForCredential: Bool { device == CredentialProbe.apnsDevice }
    func header(_ name: String) -> String? {
      headers.first { $0.name.elementsEqual(name.utf8) }.map { String(decoding: $0.value, as: UTF8.self) }
    }
  }

  enum Answer {
    case status(Int, String = "", [(String, String)] = [])
    case stall
    case refuse
    case reset(ErrorCode)
  }

  private(set) var requests: [Request] = []
  /// Devices to which a push was really given: answered with 200.
  private(set) var delivered: [String] = []
  private(set) var sessions: [ServerSession] = []
  private(set) var violations: [String] = []
  var streamLimit = 100
  var answer: (Request) -> Answer = { _ in .status(200) }

  func accept() -> ServerSession {
    var configuration = ServerConfiguration()
    configuration.maxConcurrentStreams = streamLimit
    let session = ServerSession(configuration: configuration, handler: self)
    sessions.append(session)
    return session
  }

  func requestReceived(_ request: ServerRequest, on session: ServerSession) {
    func text(_ name: String) -> String { String(decoding: request.header(name) ?? [], as: UTF8.self) }
    let seen = Request(
      path: text(":path"), authorization: text("authorization"), body: request.body, headers: request.headers,
      connection: sessions.firstIndex { $0 === session } ?? -1, stream: request.stream)
    requests.append(seen)
    give(answer(seen), to: seen, on: session)
  }

  func give(_ answer: Answer, to request: Request) { give(answer, to: request, on: sessions[request.connection]) }

  private func give(_ answer: Answer, to request: Request, on session: ServerSession) {
    switch answer {
    case .status(let status, let body, let headers):
      if status == 200 { delivered.append(request.device) }
      session.respond(
        request.stream, status: status, headers: headers.map { HeaderField($0.0, $0.1) }, body: Array(body.utf8))
    case .stall: break
    case .refuse: session.reset(request.stream, .refusedStream)
    case .reset(let code): session.reset(request.stream, code)
    }
  }

  func protocolViolated(_ what: String, on session: ServerSession) { violations.append(what) }
}
