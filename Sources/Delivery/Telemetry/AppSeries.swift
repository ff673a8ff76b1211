/// Assigns each application to a metric series. The first ``most`` applications, sorted by id at the worker's start, have their
/// own series. Later ones get one while there is room; the others share one. An application keeps its series while the process
/// runs.
package struct AppSeries: Sendable {
  /// Requests for an unknown application.
  package static let none = 0
  package static let others = 1
  package static let othersName = "(other)"
  package static let most = 30

  package private(set) var names = ["(none)", othersName]
  private var numbers: [Int] = []

  package init() {}

  /// - Parameter app: the next index, or one that has a series already.
  mutating func add(_ app: Int, _ id: [UInt8]) {
    guard app == numbers.count else { return }
    guard names.count < Self.most + 2 else { return numbers.append(Self.others) }
    numbers.append(names.count)
    names.append(String(decoding: id, as: UTF8.self))
  }

  /// - Parameter app: the application's index; nil if unknown.
  package func number(of app: Int?) -> Int { app.map { numbers[$0] } ?? Self.none }
}
