import Foundation
import TestSupport
import Testing

@Suite("A child process", .blocking)
struct ChildProcessTests {
  @Test("writes its output into the file at a path, which is not replaced")
  func outputIsNotReplaced() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let file = folder.appendingPathComponent("file").path
    let link = folder.appendingPathComponent("link").path
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: file)

    let child = try ChildProcess(["/bin/echo", "hello"], environment: [:], output: link)
    #expect(child.wait() == 0)

    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == file)
    #expect(try String(contentsOfFile: file, encoding: .utf8) == "hello\n")
  }
}
