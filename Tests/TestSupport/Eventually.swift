import Foundation

/// Repeats a check for at most `seconds`, 50 times a second.
/// - Returns: false if the condition doesn't hold by then.
public func eventually(seconds: Double = 90, _ condition: () throws -> Bool) rethrows -> Bool {
  let end = Date().addingTimeInterval(seconds)
  while try !condition() {
    guard Date() < end else { return false }
    usleep(20_000)
  }
  return true
}
