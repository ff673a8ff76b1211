import AMQP

/// Collects the frames of a publication: method, header, and the announced bytes of body.
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
    /// → `header`.
    case none
    /// → `body`, or `none` for an empty body.
    case header(Publication)
    /// → `none`.
    case body(Publication)
  }

  private var state = State.none

  var isUnderway: Bool { if case .none = state { false } else { true } }

  mutating func begin(exchange: [UInt8], routingKey: [UInt8], mandatory: Bool) {
    state = .header(Publication(exchange: exchange, routingKey: routingKey, mandatory: mandatory))
  }

  /// Adds a header or body frame. Returns the publication once it is complete.
  mutating func add(_ type: UInt8, _ payload: ArraySlice<UInt8>, maximum: Int) throws(Refusal) -> Publication? {
    var publication: Publication
    switch state {
    case .none: throw .unexpectedFrame("expected method frame, got content frame instead")
    case .header(let begun):
      guard type == Frame.contentHeader else { throw .unexpectedFrame("expected content header") }
      publication = begun
      try Self.readHeader(payload, into: &publication, maximum: maximum)
    case .body(let begun):
      guard type == Frame.contentBody, payload.count <= begun.size - begun.body.count else {
        throw .unexpectedFrame("expected content body")
      }
      publication = begun
      // Release the other reference, so that the body grows without a copy.
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
