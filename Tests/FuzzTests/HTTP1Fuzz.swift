import HTTP2
import TestSupport
import Wire

/// A provider's HTTP/1.1. An answer is the same in any division of its bytes, and a request that is free to be sent again was not
/// sent.
final class HTTP1Fuzz: SessionFuzz {
  private var input: Input
  private var sent: Set<Int> = []

  init(_ input: inout Input) {
    let choices = input.byte()
    let reactions = input.bytes(Call.allCases.count)
    var configuration = ClientConfiguration()
    configuration.allowsHTTP1 = true
    configuration.maxResponseBody = 32
    configuration.maxHeaderListSize = 512
    configuration.keptResponseHeaders = ["retry-after", "date"]
    configuration.keepsHeadersOfSuccess = choices & 1 == 0
    if choices & 2 != 0 { configuration.lastStreamID = 9 }
    self.input = input
    super.init(configuration, reactions: reactions, applicationProtocol: choices & 4 == 0 ? "http/1.1" : "")
    cut = choices & 16 == 0 ? .max : Int(choices >> 5) + 1
  }

  /// Begins with a request open.
  func run() throws(Violation) {
    try compareDivisions()
    submit(bodyBytes: 2)
    try flush()
    while !input.isAtEnd { try step() }
    try finish()
  }

  private static let heads = [
    "HTTP/1.1 201 Created\r\n", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.0 410 Gone\r\n", "HTTP/1.1 204 \r\n", "HTTP/1.1 ", "",
  ]
  private static let headers = [
    "Content-Length: 3\r\n", "Transfer-Encoding: chunked\r\n", "Connection: close\r\n", "Retry-After: 1\r\n",
    "Content-Length: ", "",
  ]
  private static let bodies = ["\r\nabc", "\r\n3\r\nabc\r\n0\r\n\r\n", "\r\nffff\r\n", "\r\n", ""]

  private func step() throws(Violation) {
    switch input.byte() % 12 {
    case 0: try tell(input.counted())
    case 1: try tell(choice(Self.heads))
    case 2: try tell(choice(Self.headers))
    case 3: try tell(choice(Self.bodies))
    case 4: try tell(choice(Self.heads) + choice(Self.headers) + choice(Self.bodies))
    case 5:
      let (byte, count) = (input.byte(), Int(input.byte()) * 512)
      try tell([UInt8](repeating: byte, count: count))
    case 6: submit(bodyBytes: Int(input.byte()) * 1_000)
    case 7: try wait(Double(input.byte()) / 4)
    case 8: session.drain()
    case 9: session.limitStreams(to: Int(input.byte() % 3))
    case 10: try flush()
    default: try hold()
    }
    try checkStreams()
    try require(session.activeStreams <= 1, "\(session.activeStreams) requests at once")
  }

  private func choice(_ texts: [String]) -> [UInt8] { Array(texts[Int(input.byte()) % texts.count].utf8) }

  override func written(_ bytes: [UInt8]) throws(Violation) {
    if !bytes.isEmpty { sent.formUnion(open) }
  }

  override func failed(_ tag: Int, _ failure: RequestFailure) {
    if case .notProcessed = failure { expect(!sent.contains(tag), "\(tag) is safe to send again, but was sent") }
    super.failed(tag, failure)
  }

  private func compareDivisions() throws(Violation) {
    let bytes = input.counted()
    let whole = read(bytes, cut: .max)
    for cut in [1, 2, 7] {
      try require(read(bytes, cut: cut) == whole, "another answer in pieces of \(cut)")
    }
    try require(whole.body.count <= session.configuration.maxResponseBody, "a body of \(whole.body.count) bytes")
  }

  private struct Reading: Equatable {
    var status: Int
    var body: [UInt8]
    var retryAfter: [UInt8]?
    var taken: Int
    var isComplete: Bool
    var endsConnection: Bool
    var fault: String?
  }

  private func read(_ bytes: [UInt8], cut: Int) -> Reading {
    var answer = HTTP1Answer(session.configuration)
    var response = Response()
    var taken = 0
    while taken < bytes.count, !answer.isComplete, answer.fault == nil {
      let piece = Array(bytes[taken...].prefix(cut))
      taken += answer.read(piece.span.bytes, into: &response)
    }
    return Reading(
      status: response.status, body: response.body, retryAfter: response.header(0), taken: taken, isComplete: answer.isComplete,
      endsConnection: answer.endsConnection, fault: answer.fault)
  }
}
