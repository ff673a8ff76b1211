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

  /// What is written to it has been read once it is empty.
  private func awaitRead(of pipe: Pipe) -> Bool {
    eventually {
      var left: Int32 = 0
      return ioctl(pipe.fileHandleForReading.fileDescriptor, UInt(FIONREAD), &left) != 0 || left == 0
    }
  }

  @Test(
    "says so, and that nothing was done, while it reads standard input",
    arguments: [
      (["explain", "-"], #"{"to":"#, "the request has not ended"), (["send", "--check", "-"], "{", "nothing was sent"),
      (["topics", "subscribe", "news", "-"], "apns:00\n", "nothing was changed"),
      (["topics", "unsubscribe", "news", "-"], "apns:00\n", "nothing was changed"),
      (["groups", "create", "family", "-"], "apns:00\n", "nothing was changed"),
      (["devices", "import", "--dry-run", "-"], "token,platform\n", "nothing was stored"),
    ])
  func reading(words: [String], input: String, said: String) throws {
    let site = try RegistrySite()
    _ = try site.store()
    let pipe = Pipe()
    let child = try ChildProcess(
      [Program.path] + words + ["--config", site.configuration], environment: RegistrySite.environment, output: nil,
      input: pipe.fileHandleForReading)
    defer { child.end() }
    try pipe.fileHandleForWriting.write(contentsOf: Data(input.utf8))
    #expect(awaitRead(of: pipe), "\(child.outputSoFar)")
    child.signal(2)
    #expect(child.wait() == 130)
    #expect(child.outputSoFar.contains("pushfleet: interrupted") && child.outputSoFar.contains(said), "\(child.outputSoFar)")
  }

  @Test("says so also where another part of it listened for signals before")
  func listensAgain() throws {
    let site = try RegistrySite()
    let file = try site.write(#"{"to":"\#(token(1))","notification":{"body":"x"}}"#, "request.json")
    let child = try ChildProcess(
      [Program.path, "send", "--check", file, "--config", site.configuration], environment: RegistrySite.environment,
      output: nil)
    defer { child.end() }
    #expect(child.waitForOutput("the broker can't be reached", seconds: 90), "\(child.outputSoFar)")
    child.signal(2)
    #expect(child.wait() == 130 && child.outputSoFar.contains("pushfleet: interrupted"), "\(child.outputSoFar)")
  }

  @Test("says how far it came between two batches", arguments: ["subscribe", "unsubscribe"])
  func betweenBatches(word: String) throws {
    let site = try RegistrySite()
    try site.configure(#"registry: "\#(site.location)", registryLimits: { batch: 1 },"#)
    _ = try site.store()
    let names = (0..<50_000).map { "apns:\(token($0))" }.joined(separator: "\n")
    let child = try ChildProcess(
      [Program.path, "topics", word, "news", "-", "--config", site.configuration], environment: RegistrySite.environment,
      output: nil, input: FileHandle(forReadingAtPath: try site.write(names, "names")))
    defer { child.end() }
    #expect(child.waitForOutput("device 1:", seconds: 90), "\(child.outputSoFar.prefix(500))")
    child.signal(2)
    #expect(child.wait() == 130)
    let last = child.outputSoFar.suffix(200)
    #expect(last.contains("interrupted: 0 of 50000 \(word)d; the same command again does no harm"), "\(last)")
  }

  @Test("ends although nobody reads its output", arguments: [2, 15] as [Int32])
  func unread(signal: Int32) throws {
    let site = try RegistrySite()
    let rows = (0..<5_000).map { "\(token($0)),apns" }
    let imported = try ChildProcess(
      [
        Program.path, "devices", "import", site.write((["token,platform"] + rows).joined(separator: "\n"), "devices.csv"),
        "--config", site.configuration,
      ], environment: RegistrySite.environment, output: nil)
    #expect(imported.wait() == 0, "\(imported.outputSoFar)")
    let pipe = site.folder.appendingPathComponent("pipe").path
    try #require(mkfifo(pipe, 0o600) == 0)
    let reader = open(pipe, O_RDWR | O_CLOEXEC)
    defer { close(reader) }
    let child = try ChildProcess(
      [Program.path, "devices", "export", "--config", site.configuration], environment: RegistrySite.environment, output: pipe)
    defer { child.end() }
    // The search for secrets would wait for the pipe's end.
    unlink(pipe)
    var filled: Int32 = 0
    #expect(eventually { ioctl(reader, UInt(FIONREAD), &filled) == 0 && filled >= 65_536 })
    child.signal(signal)
    #expect(child.wait() == 128 + signal)
  }
}
