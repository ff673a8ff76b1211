import Foundation

/// The `pushfleet` under test: the file in `PUSHFLEET_PROGRAM`, or the debug build beside the tests.
public enum Program {
  /// The program's absolute path. Without a program the test run ends here.
  public static let path: String = {
    let beside = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: "pushfleet").path
    let named = ProcessInfo.processInfo.environment["PUSHFLEET_PROGRAM"]
    let path = URL(filePath: named ?? beside).path
    guard FileManager.default.isExecutableFile(atPath: path) else {
      fatalError("no program to test: \(named == nil ? "beside the tests" : "by PUSHFLEET_PROGRAM") there is no \(path)")
    }
    return path
  }()

  /// True for the release build that `deploy/test` names.
  public static var isRelease: Bool { ProcessInfo.processInfo.environment["PUSHFLEET_PROGRAM"] != nil }
}
