import Foundation

/// An independent judge, Debian's python3-jsonschema, in one process for all tests.
final class SchemaJudge: @unchecked Sendable {
  static let shared = SchemaJudge()

  private let lock = NSLock()
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()
  private var isStarted = false

  struct Broken: Error { var words: String }

  /// For each text: empty when it is valid by the schema, else where and why it isn't.
  func judge(_ cases: [(schema: String, text: String)]) throws -> [String] {
    try lock.withLock {
      try start()
      let file = FileManager.default.temporaryDirectory.appending(path: "pushfleet-schema-\(UUID().uuidString)")
      let answers = URL(filePath: file.path + ".out")
      defer {
        try? FileManager.default.removeItem(at: file)
        try? FileManager.default.removeItem(at: answers)
      }
      let lines = cases.map { "\(SchemaFiles.folder.appending(path: $0.schema).path)\t\($0.text)\n" }
      try lines.joined().write(to: file, atomically: false, encoding: .utf8)
      try input.fileHandleForWriting.write(contentsOf: Data("\(file.path)\n".utf8))
      var answer = Data()
      while answer.last != UInt8(ascii: "\n") {
        let more = output.fileHandleForReading.availableData
        guard !more.isEmpty else { throw Broken(words: "the judge has ended") }
        answer += more
      }
      let words = try String(contentsOf: answers, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false)
      guard words.count == cases.count + 1 else { throw Broken(words: "\(words.count - 1) answers to \(cases.count)") }
      return words.dropLast().map(String.init)
    }
  }

  /// It ends when the test process does, with its input.
  private func start() throws {
    guard !isStarted else { return }
    isStarted = true
    process.executableURL = URL(filePath: "/usr/bin/python3")
    process.arguments = [URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Support/judge.py").path]
    process.standardInput = input
    process.standardOutput = output
    try process.run()
  }
}
