import Foundation
import TestSupport

/// Validates with an independent implementation, Debian's python3-jsonschema, in one process for all tests.
final class SchemaJudge: @unchecked Sendable {
  static let shared = SchemaJudge()

  private let lock = NSLock()
  private let input = Pipe()
  private var process: ChildProcess?

  struct Broken: Error { var words: String }

  /// One verdict for each text: empty if the text is valid, else the place and the reason.
  func judge(_ cases: [(schema: String, text: String)]) throws -> [String] {
    try lock.withLock {
      let process = try process ?? start()
      let file = FileManager.default.temporaryDirectory.appending(path: "pushfleet-schema-\(UUID().uuidString)")
      let answers = URL(filePath: file.path + ".out")
      defer {
        try? FileManager.default.removeItem(at: file)
        try? FileManager.default.removeItem(at: answers)
      }
      let lines = cases.map { "\(SchemaFiles.folder.appending(path: $0.schema).path)\t\($0.text)\n" }
      try lines.joined().write(to: file, atomically: false, encoding: .utf8)
      let answered = process.linesSoFar
      try input.fileHandleForWriting.write(contentsOf: Data("\(file.path)\n".utf8))
      guard process.waitForLines(answered + 1, seconds: 60) else { throw Broken(words: "the judge: \(process.outputSoFar)") }
      let words = try String(contentsOf: answers, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false)
      guard words.count == cases.count + 1 else { throw Broken(words: "\(words.count - 1) answers to \(cases.count)") }
      return words.dropLast().map(String.init)
    }
  }

  /// The process ends with its standard input, so with the test process.
  private func start() throws -> ChildProcess {
    let program = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Support/judge.py").path
    let started = try ChildProcess(
      ["/usr/bin/python3", program], output: nil, input: input.fileHandleForReading, errors: .standardError)
    try input.fileHandleForReading.close()
    process = started
    return started
  }
}
