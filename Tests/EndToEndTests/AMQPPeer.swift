import Foundation
import Glibc
import TestSupport

/// Python's pika, in a process for each command. `amqp_peer.py serve` forks them, so that pika is imported once.
final class AMQPPeer: Sendable {
  static let shared = Result { try AMQPPeer() }

  private let server: ChildProcess
  /// The server ends with this pipe, and with it when the test process ends.
  private let life = Pipe()
  private let port: UInt16

  private init() throws {
    server = try ChildProcess(
      ["/usr/bin/python3", Site.support("amqp_peer.py"), "serve"], environment: ["PATH": "/usr/bin:/bin"], output: nil,
      input: life.fileHandleForReading)
    try life.fileHandleForReading.close()
    guard server.waitForLines(1, seconds: 90),
      let port = UInt16(server.outputSoFar.trimmingCharacters(in: .whitespacesAndNewlines))
    else { throw Broken("amqp_peer.py did not start: \(server.outputSoFar)") }
    self.port = port
  }

  /// - Parameter input: a file for the command's standard input.
  /// - Returns: what the command printed.
  func run(_ words: [String], input: String?) throws -> String {
    let request = try JSONSerialization.data(withJSONObject: ["words": words, "input": input ?? ""]) + Data("\n".utf8)
    // The longest command waits for 90 seconds.
    guard let raw = HTTPProbe(port: port).connection(seconds: 600) else {
      throw Broken("amqp_peer.py accepts nothing: \(server.outputSoFar)")
    }
    let connection = FileHandle(fileDescriptor: raw, closeOnDealloc: true)
    try connection.write(contentsOf: request)
    let answer = String(decoding: try connection.readToEnd() ?? Data(), as: UTF8.self)
    // The last line is the status.
    let lines = answer.dropLast()
    let end = lines.lastIndex(of: "\n").map(lines.index(after:)) ?? lines.startIndex
    guard lines[end...] == "0" else { throw Broken("amqp_peer.py \(words) ended with \(lines[end...]): \(lines[..<end])") }
    return String(lines[..<end])
  }
}
