import PushCore

/// A result in `push.results`.
struct SimulatedResult {
  var success: Int
  var failure: Int
  /// Time of arrival in the queue, in Unix milliseconds.
  var at: Int64 = 0
  /// For each target, nil if it was reached. Empty for an audience.
  var errors: [String?] = []

  init?(_ body: [UInt8]) {
    guard let document = try? JSONDocument(body), let success = Self.number("success", document),
      let failure = Self.number("failure", document)
    else { return nil }
    self.success = success
    self.failure = failure
    guard let results = document.value("results", of: document.root) else { return }
    for element in document.elements(of: results) {
      errors.append(document.value("error", of: element).map { document.text($0) })
    }
  }

  /// True if a newer request has replaced this one for a target.
  func isCollapsed(_ index: Int, of count: Int) -> Bool { errors.count == count && errors[index] == "Collapsed" }

  private static func number(_ name: String, _ document: JSONDocument) -> Int? {
    document.value(name, of: document.root).flatMap { Int(document.text($0)) }
  }
}
