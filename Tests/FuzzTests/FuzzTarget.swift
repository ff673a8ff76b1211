/// A part of the program that reads what strangers write, as a function of bytes: `dev/fuzz` searches for bytes that break one of
/// its promises, and the corpus test replays what is kept in Tests/Corpora.
enum FuzzTarget: String, CaseIterable {
  /// Requests, and what both platforms get of them.
  case request
  /// The broker's words to a consumer, and to a publisher.
  case consumer, publisher
  /// A provider's HTTP/2, and its HTTP/1.1.
  case http2, http1
  /// The headers that workers write for one another on queues that others can write to as well.
  case headers
  /// What providers and token endpoints answer.
  case answers
  /// Registry changes and rows of CSV.
  case registry
  case configuration
  /// What senders of APNs' binary interface write.
  case binary
  /// What is asked of the gateway over HTTP, and what workers say of it.
  case door

  /// - Throws: when a promise is not kept. A trap is a finding too.
  func run(_ bytes: [UInt8]) throws(Violation) {
    var input = Input(bytes)
    switch self {
    case .request: try RequestFuzz.run(&input)
    case .consumer: try ConsumerFuzz(&input).run()
    case .publisher: try PublisherFuzz(&input).run()
    case .http2: try HTTP2Fuzz(&input).run()
    case .http1: try HTTP1Fuzz(&input).run()
    case .headers: try HeadersFuzz.run(&input)
    case .answers: try AnswersFuzz.run(&input)
    case .registry: try RegistryFuzz.run(&input)
    case .configuration: try ConfigurationFuzz.run(&input)
    case .binary: try BinaryFuzz.run(&input)
    case .door: try DoorFuzz.run(&input)
    }
  }
}

/// A promise that was not kept.
struct Violation: Error, CustomStringConvertible {
  let description: String
}

func require(_ isKept: Bool, _ promise: @autoclosure () -> String) throws(Violation) {
  if !isKept { throw Violation(description: promise()) }
}

/// The bytes, taken apart into choices in their order. At the end every choice is 0 and every text empty.
struct Input {
  private var rest: ArraySlice<UInt8>

  init(_ bytes: [UInt8]) { rest = bytes[...] }

  var isAtEnd: Bool { rest.isEmpty }

  mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

  mutating func integer<Number: FixedWidthInteger>(_ type: Number.Type = Number.self) -> Number {
    (0..<MemoryLayout<Number>.size).reduce(0) { value, _ in value << 8 | Number(truncatingIfNeeded: byte()) }
  }

  mutating func bytes(_ count: Int) -> [UInt8] {
    defer { rest = rest.dropFirst(count) }
    return Array(rest.prefix(count))
  }

  /// As many as the next byte says.
  mutating func counted() -> [UInt8] { bytes(Int(byte())) }

  mutating func remainder() -> [UInt8] { bytes(rest.count) }
}
