import Foundation

@testable import Settings

/// A configuration is read, or refused by a key and with a problem.
enum ConfigurationFuzz {
  /// In memory: a disk may keep its writer waiting for seconds, which would pass for a hang.
  private static let file = URL(filePath: "/dev/shm/fuzz-\(UUID().uuidString).json5")

  static func run(_ input: inout Input) throws(Violation) {
    let text = Array(input.remainder())
    var isSound = true
    do throws(ConfigurationError) { _ = try ConfigurationValue.parse(text, name: "text") } catch {
      isSound = false
      try check(error)
    }
    if let string = String(validating: text, as: UTF8.self) {
      let reading = JSON5Reader.readOn(string)
      try require(reading.faults.isEmpty == isSound && (reading.value != nil || !isSound), "read on: \(reading.faults)")
      try require(reading.faults.count <= 101, "more faults than are told")
    }
    guard (try? Data(text).write(to: file)) != nil else { return }
    defer { try? FileManager.default.removeItem(at: file) }
    let configuration: Configuration
    do throws(ConfigurationError) { configuration = try Configuration.load(path: file.path, environment: [:]) } catch {
      return try check(error)
    }
    try require(!configuration.brokers.isEmpty && !configuration.apps.isEmpty, "a worker with nothing to do")
  }

  private static func check(_ error: ConfigurationError) throws(Violation) {
    try require(!error.key.isEmpty && !error.problem.isEmpty, "refused without a key or a problem: \(error)")
  }
}
