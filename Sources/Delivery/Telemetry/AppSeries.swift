/// Under which label the figures of an application stand: its own or, of those beyond a number, one that sums them up.
///
/// The first by their ids when a worker starts have their own, in each of its shards and in each worker of the same configuration; what a
/// reload adds has while there is room. An application keeps its series as long as the process runs.
package struct AppSeries: Sendable {
  /// Of requests for no application that is known.
  package static let none = 0
  /// Of all applications that have none of their own.
  package static let others = 1
  package static let othersName = "(other)"
  package static let most = 30

  /// By number.
  package private(set) var names = ["(none)", othersName]
  private var numbers: [Int] = []

  package init() {}

  /// - Parameter app: its index; one more than the last, or one that has a series already.
  mutating func add(_ app: Int, _ id: [UInt8]) {
    guard app == numbers.count else { return }
    guard names.count < Self.most + 2 else { return numbers.append(Self.others) }
    numbers.append(names.count)
    names.append(String(decoding: id, as: UTF8.self))
  }

  /// - Parameter app: its index; nil where it isn't known.
  package func number(of app: Int?) -> Int { app.map { numbers[$0] } ?? Self.none }
}
