import Foundation
import TestSupport
import Testing

@Suite("A command that is interrupted")
struct InterruptionTests {
  @Test(
    "says so, and ends with status 130, while it waits for the broker",
    arguments: [
      ["topology"], ["feedback"], ["feedback", "--follow"], ["status"], ["top", "--json"], ["trace", "m-1"], ["doctor"],
      ["dead", "list"],
    ])
  func unreachable(words: [String]) throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "pushfleet-interrupted-\(UUID().uuidString.prefix(8))")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let file = folder.appending(path: "pushfleet.json5").path
    let certificates = try TestCertificates.make()
    let apns = "{ key: '\(certificates.p8)', keyID: 'ABC123DEFG', teamID: 'DEF123GHIJ', topic: 'com.example.app' }"
    // Nobody listens there.
    try "{ broker: 'amqp://127.0.0.1:1/', trace: { keep: '1h' }, apps: { 'com.example.app': { apns: \(apns) } } }".write(
      toFile: file, atomically: true, encoding: .utf8)
    let child = try ChildProcess(
      [Program.path] + words + ["--config", file], environment: RegistrySite.environment, output: nil)
    defer { child.end() }
    #expect(child.waitForOutput("the broker can't be reached", seconds: 90), "\(child.outputSoFar)")
    child.signal(2)
    #expect(child.wait() == 130)
    #expect(child.outputSoFar.contains("pushfleet: interrupted"), "\(child.outputSoFar)")
  }
}
