import HTTP2

/// An answer to a request.
struct SimulatedAnswer {
  var status: Int
  /// For the journal; nil if the request is accepted.
  var reason: String?
  var headers: [HeaderField] = []
  var body: [UInt8] = []
}
