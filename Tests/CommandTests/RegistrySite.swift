import DeviceRegistry
import Foundation
import TestSupport

/// A registry of its own for one test, with a configuration that names it, in a folder of its own.
final class RegistrySite {
  static let app = "com.example.app"

  enum Backend: String, CaseIterable {
    case sqlite, postgres
    /// Those that this machine can run.
    static var available: [Backend] { Postgres.shared == nil ? [.sqlite] : allCases }
  }

  let folder: URL
  let location: String

  init(_ backend: Backend = .sqlite, location: String? = nil) throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("commands-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    if let location {
      self.location = location
    } else if backend == .postgres, let server = Postgres.shared {
      self.location = try server.get().makeDatabase()
    } else {
      self.location = "sqlite:\(folder.path)/registry.db"
    }
    try configure(#"registry: "\#(self.location)","#)
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  func configure(_ settings: String, apps: [String] = [app]) throws {
    let apps = apps.map { #""\#($0)": { apns: { key: "k.p8", keyID: "ABC123DEFG", teamID: "DEF123GHIJ" } }"# }
    try write(
      Array(#"{ broker: "amqp://127.0.0.1:1/", \#(settings) apps: { \#(apps.joined(separator: ", ")) } }"#.utf8),
      "pushfleet.json5")
  }

  @discardableResult
  func write(_ bytes: [UInt8], _ name: String) throws -> String {
    let file = folder.appendingPathComponent(name)
    try Data(bytes).write(to: file)
    return file.path
  }

  @discardableResult
  func write(_ text: String, _ name: String) throws -> String { try write(Array(text.utf8), name) }

  func store() throws -> DeviceStore { try openRegistry(try RegistryLocation(parsing: location)) }

  struct Ended {
    var status: Int32
    /// Standard output and standard error.
    var output: String
    var errors: String

    var lines: [String] { output.split(separator: "\n").map(String.init) }
    var objects: [[String: Any]] {
      lines.map { (try? JSONSerialization.jsonObject(with: Data($0.utf8))) as? [String: Any] ?? ["unreadable": $0] }
    }
  }

  static let environment = ["PATH": "/usr/bin:/bin", "SWIFT_BACKTRACE": "enable=no"]

  var configuration: String { folder.appendingPathComponent("pushfleet.json5").path }

  /// Runs a command to its end.
  @discardableResult
  func run(_ words: [String], input: [UInt8] = [], isConfigured: Bool = true) throws -> Ended {
    let names = try ["out", "err"].map { try write([], "\($0)-\(UUID().uuidString)") }
    let status = try ChildProcess(
      [Program.path] + words + (isConfigured ? ["--config", configuration] : []), environment: Self.environment,
      output: names[0], input: FileHandle(forReadingAtPath: write(input, "in")), errors: FileHandle(forWritingAtPath: names[1])
    ).wait()
    let texts = names.map { String(decoding: FileManager.default.contents(atPath: $0) ?? Data(), as: UTF8.self) }
    SpokenSecrets.look(in: texts[1], of: words)
    return Ended(status: status, output: texts[0], errors: texts[1])
  }
}

/// An APNs token made from a number.
func token(_ number: Int) -> String {
  let digits = String(number, radix: 16)
  return String(repeating: "0", count: 64 - digits.count) + digits
}
