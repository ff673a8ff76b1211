import Foundation

/// The `pushfleet` that tests start: the one that `PUSHFLEET_PROGRAM` names, or else the debug build beside the tests.
public enum Program {
  /// Where it lies, from the root. There is nothing to be tested without it: the run ends here then.
  public static let path: String = {
    let beside = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: "pushfleet").path
    let named = ProcessInfo.processInfo.environment["PUSHFLEET_PROGRAM"]
    let path = URL(filePath: named ?? beside).path
    guard FileManager.default.isExecutableFile(atPath: path) else {
      fatalError("no program to test: \(named == nil ? "beside the tests" : "by PUSHFLEET_PROGRAM") there is no \(path)")
    }
    return path
  }()

  /// The release build that `deploy/test` names, and not the debug build beside the tests.
  public static var isRelease: Bool { ProcessInfo.processInfo.environment["PUSHFLEET_PROGRAM"] != nil }
}
