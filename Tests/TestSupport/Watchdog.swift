import Foundation
import Glibc

/// Cleans up after a test process: a shell that reads process ids from a pipe. When the pipe closes, because the test process
/// has ended, the shell kills those that still run in the folder and removes the folder.
struct Watchdog {
  private let pipe = Pipe()
  private let shell: ChildProcess

  private static let script = """
    while read -r pid; do pids="$pids $pid"; done
    for pid in $pids; do grep -qsa -- "$1" /proc/$pid/environ && kill -9 $pid; done
    rm -rf -- "$1"
    """

  init(directory: String) throws {
    shell = try ChildProcess(
      ["/bin/sh", "-c", Self.script, "watchdog", directory], environment: ["PATH": "/usr/bin:/bin"], output: "/dev/null",
      input: pipe.fileHandleForReading)
    try pipe.fileHandleForReading.close()
  }

  func watch(_ pid: pid_t) { try? pipe.fileHandleForWriting.write(contentsOf: Array("\(pid)\n".utf8)) }

  /// Ends the shell after an orderly end of everything.
  func dismiss() {
    try? pipe.fileHandleForWriting.close()
    shell.wait()
  }
}
