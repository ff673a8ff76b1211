import AMQP

/// The size limit of producers' headers. A republished message must fit in one frame with the worker's notes and the broker's
/// additions.
extension NoteReader {
  /// Bytes of headers, without the fleet's own and the broker's.
  static let mostHeaders = 16 * 1024

  /// Removes headers of a message that has too many bytes of them. A producer's message is then refused. A message that an
  /// older worker republished without this limit continues without the producer's headers.
  /// - Parameter queue: nil for the queues of the registry and of acknowledgements.
  package func limitHeaders(of delivery: inout Delivery, queue: WorkQueue?) {
    let headers = delivery.properties.headers
    guard headers.encoded.count > Self.mostHeaders else { return }
    if areNotesOurs(delivery.exchange, queue) {
      delivery.properties.headers = Self.limited(headers)
    } else {
      delivery.properties.headers = Self.choices(in: headers)
      delivery.properties.omittedHeaders = headers.encoded.count
    }
  }

  /// Why a message with omitted headers is refused; nil for other messages.
  package static func refusal(of properties: borrowing BasicProperties) -> String? {
    properties.omittedHeaders == 0 ? nil : "headers: \(properties.omittedHeaders) bytes, the limit is \(mostHeaders)"
  }

  /// Headers for a message from a worker, without the producer's headers if these are too large.
  static func limited(_ headers: FieldTable) -> FieldTable {
    guard headers.encoded.count > mostHeaders, MessageHeaders.withoutAdded(headers).encoded.count > mostHeaders else {
      return headers
    }
    return MessageHeaders.withoutProducers(headers, keepsChoices: !choices(in: headers).isEmpty)
  }

  /// The producer's choices, such as the sender. Without them a request would go to another sender.
  private static func choices(in headers: FieldTable) -> FieldTable {
    var choices = FieldTable()
    for name in MessageHeaders.choiceNames {
      if let value = headers[name] { choices.append(name, value) }
    }
    return choices.encoded.count <= mostHeaders ? choices : FieldTable()
  }
}
