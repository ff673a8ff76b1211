import Foundation
import Glibc

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
