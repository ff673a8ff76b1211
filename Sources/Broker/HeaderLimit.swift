import AMQP

/// The limit of what producers write into headers. Everything that a worker publishes of a message has to fit one frame together with the worker's
/// notes and with what the broker adds.
extension NoteReader {
  /// Bytes of headers, beside those of the fleet's own and of the broker's.
  static let mostHeaders = 16 * 1024

  /// Leaves out headers of a message that has too many of them. A producer's message is then to be refused; one that a worker has sent on before
  /// there was a limit goes on without them.
  /// - Parameter queue: nil for the registry's and that of acknowledgements.
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

  /// Why a message whose headers were left out is refused; nil for any other.
  package static func refusal(of properties: borrowing BasicProperties) -> String? {
    properties.omittedHeaders == 0 ? nil : "headers: \(properties.omittedHeaders) bytes, the limit is \(mostHeaders)"
  }

  /// The headers of what a worker has written, without the producer's where these are too many.
  static func limited(_ headers: FieldTable) -> FieldTable {
    guard headers.encoded.count > mostHeaders, MessageHeaders.withoutAdded(headers).encoded.count > mostHeaders else {
      return headers
    }
    let hasChoices = !choices(in: headers).isEmpty
    return headers.removing { !$0.starts(with: "x-push-".utf8) || !hasChoices && MessageHeaders.choices.contains($0) }
  }

  /// Without them a request would go to another sender.
  private static func choices(in headers: FieldTable) -> FieldTable {
    var choices = FieldTable()
    for name in MessageHeaders.choiceNames {
      if let value = headers[name] { choices.append(name, value) }
    }
    return choices.encoded.count <= mostHeaders ? choices : FieldTable()
  }
}
