import PushCore

/// A result as whoever reads `push.results` sees it.
struct SimulatedResult {
  var success: Int
  var failure: Int
  /// When the queue had it, in unix milliseconds.
  var at: Int64 = 0
  /// Of each target: nil where it was reached. Empty for an audience's.
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

  /// A newer request has taken the place of this one for a target.
  func isCollapsed(_ index: Int, of count: Int) -> Bool { errors.count == count && errors[index] == "Collapsed" }

  private static func number(_ name: String, _ document: JSONDocument) -> Int? {
    document.value(name, of: document.root).flatMap { Int(document.text($0)) }
  }
}
