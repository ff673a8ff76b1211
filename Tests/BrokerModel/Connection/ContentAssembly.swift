import AMQP

/// A publication whose frames are coming in: the method, a header, and as much body as the header announces.
struct ContentAssembly {
  struct Publication {
    var exchange: [UInt8]
    var routingKey: [UInt8]
    var mandatory: Bool
    var properties = BasicProperties()
    var encodedProperties: [UInt8] = []
    var size = 0
    var body: [UInt8] = []
  }

  private enum State {
    /// Then `header`.
    case none
    /// Then `body`, or `none` for an empty one.
    case header(Publication)
    /// Then `none`.
    case body(Publication)
  }

  private var state = State.none

  var isUnderway: Bool { if case .none = state { false } else { true } }

  mutating func begin(exchange: [UInt8], routingKey: [UInt8], mandatory: Bool) {
    state = .header(Publication(exchange: exchange, routingKey: routingKey, mandatory: mandatory))
  }

  /// Takes a header or body frame; the publication, once it is whole.
  mutating func add(_ type: UInt8, _ payload: ArraySlice<UInt8>, maximum: Int) throws(Refusal) -> Publication? {
    var publication: Publication
    switch state {
    case .none: throw .unexpectedFrame("expected method frame, got content frame instead")
    case .header(let begun):
      guard type == FrameType.header else { throw .unexpectedFrame("expected content header") }
      publication = begun
      try Self.readHeader(payload, into: &publication, maximum: maximum)
    case .body(let begun):
      guard type == FrameType.body, payload.count <= begun.size - begun.body.count else {
        throw .unexpectedFrame("expected content body")
      }
      publication = begun
      // The only one to hold the body while it grows.
      state = .none
      publication.body += payload
    }
    let isWhole = publication.body.count == publication.size
    state = isWhole ? .none : .body(publication)
    return isWhole ? publication : nil
  }

  private static func readHeader(
    _ payload: ArraySlice<UInt8>, into publication: inout Publication, maximum: Int
  ) throws(Refusal) {
    var reader = ByteReader(payload)
    let classID = reader.uint16()
    reader.skip(2)
    let size = reader.uint64()
    let encoded = Array(reader.remaining)
    guard !reader.isBroken, classID == 60, let properties = BasicProperties(encoded: encoded) else {
      throw .syntaxError("a malformed content header")
    }
    guard size <= UInt64(maximum) else {
      throw .syntaxError("message size \(size) is larger than configured max size \(maximum)")
    }
    publication.properties = properties
    publication.encodedProperties = encoded
    publication.size = Int(size)
  }
}
