import Foundation
import Reactor

struct ShellCommand {
  let text: String

  /// Seconds between two checks whether the command has ended.
  private static let pause = 0.02

  /// Quotes any text as one word of a shell command line.
  static func quoted(_ word: String) -> String { "'" + word.replacing("'", with: #"'\''"#) + "'" }

  /// - Parameter completion: called with the problem in words, or nil if the command ended with status 0.
  func run(_ input: [UInt8], on loop: EventLoop, _ completion: @escaping (String?) -> Void) {
    let process = Process()
    process.executableURL = URL(filePath: "/bin/sh")
    process.arguments = ["-c", text]
    let pipe = Pipe()
    process.standardInput = pipe
    do { try process.run() } catch { return completion("can't be started: \(error.localizedDescription)") }
    // A separate thread, because the command may read slowly or not at all.
    Thread.detachNewThread {
      try? pipe.fileHandleForWriting.write(contentsOf: Data(input))
      try? pipe.fileHandleForWriting.close()
    }
    Self.end(of: process, on: loop, completion)
  }

  private static func end(of process: Process, on loop: EventLoop, _ completion: @escaping (String?) -> Void) {
    loop.schedule(after: pause) {
      if process.isRunning { return end(of: process, on: loop, completion) }
      let status = process.terminationStatus
      guard process.terminationReason == .exit else { return completion("was ended by signal \(status)") }
      completion(status == 0 ? nil : "ended with status \(status)")
    }
  }
}
