import CLinux
import Foundation
import Glibc

/// A program started by a test. It has only three descriptors, blocks no signals and has a separate process group.
///
/// One thread reads its output. Another waits for its end, so that no signal reaches a later process with the same id. The
/// output of pushfleet is searched for secrets when it has ended.
public final class ChildProcess: @unchecked Sendable {
  public let pid: pid_t
  private let command: [String]
  private let outputFile: String?
  // Everything below is accessed with the condition's lock.
  private let condition = NSCondition()
  private var captured: [UInt8] = []
  private var lineCount = 0
  private var isOutputEnded: Bool
  private var exitStatus: Int32?
  private var isSearched = false

  /// - Parameters:
  ///   - command: the program's path and its arguments.
  ///   - environment: the whole environment; nil for the test process's environment.
  ///   - directory: the working directory; nil for that of the test process.
  ///   - output: a file for standard output and error; nil keeps them in memory.
  ///   - input: standard input; nil for none.
  ///   - errors: standard error; nil sends it to standard output.
  /// - Throws: `SetupFailure`, for example if the program doesn't exist.
  public init(
    _ command: [String], environment: [String: String]? = nil, directory: String? = nil, output: String?,
    input: FileHandle? = nil, errors: FileHandle? = nil
  ) throws {
    var opened: [Int32] = []
    defer {
      for descriptor in opened { close(descriptor) }
      withExtendedLifetime((input, errors)) {}
    }
    func kept(_ descriptor: Int32, _ path: String) throws -> Int32 {
      guard descriptor >= 0 else { throw SetupFailure(call: "open \(path)", code: errno) }
      opened.append(descriptor)
      return descriptor
    }
    let standardInput = try input?.fileDescriptor ?? kept(open("/dev/null", O_RDONLY | O_CLOEXEC), "/dev/null")
    var reading: Int32?
    let standardOutput: Int32
    if let output {
      standardOutput = try kept(open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600), output)
    } else {
      var ends: [Int32] = [-1, -1]
      guard pipe2(&ends, O_CLOEXEC) == 0 else { throw SetupFailure(call: "pipe2", code: errno) }
      reading = ends[0]
      standardOutput = try kept(ends[1], "a pipe")
    }
    isOutputEnded = reading == nil
    self.command = command
    outputFile = output
    do {
      pid = try Self.spawn(
        command, environment ?? ProcessInfo.processInfo.environment, directory,
        [standardInput, standardOutput, errors?.fileDescriptor ?? standardOutput])
    } catch {
      if let reading { close(reading) }
      throw error
    }
    if let reading { Thread.detachNewThread { [self] in readOutput(reading) } }
    Thread.detachNewThread { [self] in awaitEnd() }
  }

  private static func spawn(
    _ command: [String], _ environment: [String: String], _ directory: String?, _ streams: [Int32]
  ) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for (number, stream) in streams.enumerated() { posix_spawn_file_actions_adddup2(&actions, stream, Int32(number)) }
    posix_spawn_file_actions_addclosefrom_np(&actions, 3)
    if let directory { posix_spawn_file_actions_addchdir_np(&actions, directory) }

    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    sigaddset(&signals, SIGPIPE)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setpgroup(&attributes, 0)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP))

    var arguments = command.map { strdup($0) } + [nil]
    var settings = environment.map { strdup("\($0)=\($1)") } + [nil]
    defer { for text in arguments + settings { free(text) } }
    var pid: pid_t = 0
    let code = posix_spawn(&pid, command[0], &actions, &attributes, &arguments, &settings)
    guard code == 0 else { throw SetupFailure(call: "posix_spawn \(command[0])", code: code) }
    return pid
  }

  // MARK: Output

  public var outputSoFar: String { condition.withLock { String(decoding: captured, as: UTF8.self) } }

  /// Waits until the output contains a text this many times. False if the output ends before, or after the time limit.
  public func waitForOutput(_ text: String, times: Int = 1, seconds: Double) -> Bool {
    let bytes = Array(text.utf8)
    return waitForOutput(seconds: seconds) { Self.count(bytes, in: captured[...], atMost: times) == times }
  }

  /// The number of places at which the output has these bytes.
  private static func count(_ bytes: [UInt8], in output: ArraySlice<UInt8>, atMost limit: Int = .max) -> Int {
    output.withUnsafeBytes { output in
      var (count, begin) = (0, 0)
      while count < limit, let place = output.place(of: bytes, from: begin) {
        count += 1
        begin = place + bytes.count
      }
      return count
    }
  }

  /// Waits until the output has this many lines. False if the output ends before, or after the time limit.
  public func waitForLines(_ count: Int, seconds: Double) -> Bool { waitForOutput(seconds: seconds) { lineCount >= count } }

  public var linesSoFar: Int { condition.withLock { lineCount } }

  private func waitForOutput(seconds: Double, _ isThere: () -> Bool) -> Bool {
    let deadline = Date(timeIntervalSinceNow: seconds)
    return condition.withLock {
      while !isThere() {
        guard !isOutputEnded, condition.wait(until: deadline) else { return isThere() }
      }
      return true
    }
  }

  private func readOutput(_ descriptor: Int32) {
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = read(descriptor, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      condition.withLock {
        captured += chunk[..<max(0, count)]
        lineCount += Self.count([UInt8(ascii: "\n")], in: chunk[..<max(0, count)])
        isOutputEnded = count <= 0
        condition.broadcast()
      }
      if count <= 0 { break }
    }
    close(descriptor)
  }

  // MARK: Its end

  /// Waits for the end of the program and of its output. Returns the exit status, or 128 + the signal that ended it.
  @discardableResult
  public func wait() -> Int32 {
    let status = awaitedStatus()
    // A child of the program may keep the output open.
    _ = waitForOutput(seconds: 5) { isOutputEnded }
    searchOutput()
    return status
  }

  private func searchOutput() {
    let isSearchedAlready = condition.withLock {
      defer { isSearched = isOutputEnded }
      return isSearched
    }
    guard !isSearchedAlready, command.contains(Program.path) else { return }
    let output = outputFile.map { String(decoding: FileManager.default.contents(atPath: $0) ?? Data(), as: UTF8.self) }
    SpokenSecrets.look(in: output ?? outputSoFar, of: command)
  }

  public var isRunning: Bool { condition.withLock { exitStatus == nil } }

  public func signal(_ number: Int32) { condition.withLock { if exitStatus == nil { kill(pid, number) } } }

  public func end() {
    signal(SIGKILL)
    if command.contains(Program.path) { wait() } else { _ = awaitedStatus() }
  }

  private func awaitedStatus() -> Int32 {
    condition.withLock {
      while true {
        if let exitStatus { return exitStatus }
        condition.wait()
      }
    }
  }

  private func awaitEnd() {
    var facts = siginfo_t()
    while waitid(P_PID, id_t(pid), &facts, WEXITED | WNOWAIT) != 0, errno == EINTR {}
    condition.withLock {
      var status: Int32 = 0
      precondition(waitpid(pid, &status, 0) == pid, "somebody else has waited for \(command[0])")
      exitStatus = status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + status & 0x7F
      condition.broadcast()
    }
  }
}

extension ChildProcess {
  /// Runs a program to its end. Standard output and error are combined.
  public static func run(_ command: [String], environment: [String: String]? = nil, directory: String? = nil) throws -> (
    status: Int32, output: String
  ) {
    let child = try ChildProcess(command, environment: environment, directory: directory, output: nil)
    let status = child.wait()
    return (status, child.outputSoFar)
  }
}

/// A system call that failed while a test was set up.
public struct SetupFailure: Error {
  public let call: String
  public let code: Int32
}
