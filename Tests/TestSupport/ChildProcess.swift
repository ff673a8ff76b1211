import Foundation
import Glibc

/// A program started by a test.
public final class ChildProcess: @unchecked Sendable {
  private let process = Process()
  private let lock = NSLock()
  private var captured: [UInt8] = []
  private var lineCount = 0
  private var awaited: (event: Event, semaphore: DispatchSemaphore)?
  private var isOutputEnded = false

  public var pid: pid_t { process.processIdentifier }

  /// - Parameters:
  ///   - environment: the whole environment.
  ///   - output: a file for standard output and error; nil: they are kept in memory.
  ///   - input: standard input; nil for none.
  ///   - errors: standard error, unless it goes where standard output goes.
  public init(
    _ command: [String], environment: [String: String], output: String?, input: FileHandle? = nil, errors: FileHandle? = nil
  ) throws {
    process.executableURL = URL(fileURLWithPath: command[0])
    process.arguments = Array(command.dropFirst())
    process.environment = environment
    process.standardInput = input ?? FileHandle.nullDevice
    if let output {
      // FileManager would put a new file in the place of what stands there, be it /dev/null.
      let descriptor = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
      guard descriptor >= 0 else { throw SetupFailure(call: "open", code: errno) }
      let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
      process.standardOutput = file
      process.standardError = errors ?? file
      try process.run()
      try file.close()
    } else {
      let pipe = Pipe()
      process.standardOutput = pipe
      process.standardError = errors ?? pipe
      try process.run()
      try pipe.fileHandleForWriting.close()
      let reading = pipe.fileHandleForReading
      Thread.detachNewThread { [self] in readOutput(reading) }
    }
  }

  /// Standard output and error so far, when kept in memory.
  public var outputSoFar: String { lock.withLock { String(decoding: captured, as: UTF8.self) } }

  /// Waits until the output contains a text, or contains it so often; false when it ended before, or after a while.
  public func waitForOutput(_ text: String, times: Int = 1, seconds: Double) -> Bool {
    wait(for: .text(Array(text.utf8), times: times), seconds: seconds)
  }

  /// Waits until the output has so many lines; false when it ended before, or after a while.
  public func waitForLines(_ count: Int, seconds: Double) -> Bool { wait(for: .lines(count), seconds: seconds) }

  /// Lines of output so far, when kept in memory.
  public var linesSoFar: Int { lock.withLock { lineCount } }

  private enum Event {
    case text([UInt8], times: Int)
    case lines(Int)
  }

  private func wait(for event: Event, seconds: Double) -> Bool {
    let semaphore = DispatchSemaphore(value: 0)
    let isSettled = lock.withLock {
      awaited = (event, semaphore)
      return has(event) || isOutputEnded
    }
    if !isSettled { _ = semaphore.wait(timeout: .now() + seconds) }
    return lock.withLock {
      awaited = nil
      return has(event)
    }
  }

  private func has(_ event: Event) -> Bool {
    switch event {
    case .text(let text, 1): captured.firstRange(of: text) != nil
    case .text(let text, let times): captured.ranges(of: text).count >= times
    case .lines(let count): lineCount >= count
    }
  }

  private func readOutput(_ file: FileHandle) {
    while true {
      let data = file.availableData
      lock.withLock {
        captured += data
        lineCount += data.count { $0 == UInt8(ascii: "\n") }
        isOutputEnded = data.isEmpty
        if let awaited, isOutputEnded || has(awaited.event) {
          awaited.semaphore.signal()
          self.awaited = nil
        }
      }
      if data.isEmpty { break }
    }
    try? file.close()
  }

  /// The exit status, or 128 + the signal that ended it.
  @discardableResult
  public func wait() -> Int32 {
    process.waitUntilExit()
    return process.terminationReason == .exit ? process.terminationStatus : 128 + process.terminationStatus
  }

  /// Whether it has not ended yet.
  public var isRunning: Bool { process.isRunning }

  public func signal(_ number: Int32) { if process.isRunning { kill(pid, number) } }

  /// Kills it and waits for its end.
  public func end() {
    if process.isRunning { kill(pid, SIGKILL) }
    wait()
  }
}

/// Ends what a test process leaves behind: a shell that reads process ids from a pipe, and when the pipe closes, because
/// the test process is gone in whatever way, kills those that still run in the folder and removes the folder.
struct Watchdog {
  private let pipe = Pipe()
  private let shell: ChildProcess

  private static let script = """
    while read -r pid; do pids="$pids $pid"; done
    for pid in $pids; do grep -qsa -- "$1" /proc/$pid/environ && kill -9 $pid; done
    rm -rf -- "$1"
    """

  init(directory: String) throws {
    // Or every other child would hold the pipe open.
    for end in [pipe.fileHandleForWriting, pipe.fileHandleForReading] {
      _ = fcntl(end.fileDescriptor, F_SETFD, FD_CLOEXEC)
    }
    shell = try ChildProcess(
      ["/bin/sh", "-c", Self.script, "watchdog", directory], environment: ["PATH": "/usr/bin:/bin"], output: "/dev/null",
      input: pipe.fileHandleForReading)
    try pipe.fileHandleForReading.close()
  }

  func watch(_ pid: pid_t) { try? pipe.fileHandleForWriting.write(contentsOf: Array("\(pid)\n".utf8)) }

  /// Everything has been ended in order: the shell ends as well.
  func dismiss() {
    try? pipe.fileHandleForWriting.close()
    shell.wait()
  }
}

/// A system call that failed while a test was set up.
public struct SetupFailure: Error {
  public let call: String
  public let code: Int32
}

/// Ports that nobody listens on. They are let go before their user binds them, so a stranger may come first: then the
/// user fails to start, loudly.
public enum FreePorts {
  public static func take(_ count: Int) throws -> [UInt16] {
    var sockets: [Int32] = []
    defer { sockets.forEach { Glibc.close($0) } }
    return try (0..<count).map { _ in
      let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
      guard socket >= 0 else { throw SetupFailure(call: "socket", code: errno) }
      sockets.append(socket)
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
      var size = socklen_t(MemoryLayout<sockaddr_in>.size)
      let bound = withUnsafeMutablePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          bind(socket, $0, size) == 0 && getsockname(socket, $0, &size) == 0
        }
      }
      guard bound else { throw SetupFailure(call: "bind", code: errno) }
      return UInt16(bigEndian: address.sin_port)
    }
  }
}

/// In CI a test whose program is missing fails; elsewhere it is left out.
public let isNothingLeftOut = ProcessInfo.processInfo.environment["CI"] != nil
