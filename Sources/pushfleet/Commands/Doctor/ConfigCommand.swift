import Foundation
import PushCore
import Settings

enum ConfigCommand: Command {
  static let page = CommandPage(
    "config", "check a configuration: every error at once",
    forms: [.action("check", "[--config]", "FILE", ["--json"], .hidden(["--config"]))],
    """
    Reads the configuration as a worker does: the file, the environment's values over it, keys and certificates. Reports all
    errors at once, with line and column or the environment variable. It contacts no broker and no provider; `pushfleet doctor`
    does. Exit status 78 if there are errors. Likely mistakes and certificates that end within 30 days are warnings.
    """,
    [
      .operand("FILE", "the configuration (or --config FILE, or PUSHFLEET_CONFIG); without one, the environment alone"),
      .json("print one JSON object per finding, each on its own line"), .option("config", "FILE"),
    ],
    example: "pushfleet config check pushfleet.json5")

  static func run(_ options: Options) throws {
    guard options.operands.count + (options["config"] == nil ? 0 : 1) <= 1 else {
      throw CommandFailure(.usage, "name one configuration")
    }
    let file = options.operands.first ?? options.configurationFile
    let check = ConfigurationCheck(path: file, environment: ProcessInfo.processInfo.environment)
    let findings = check.findings.sorted { ($0.line ?? 0, $0.column ?? 0) < ($1.line ?? 0, $1.column ?? 0) }
    for finding in findings + check.certificates { options.print(finding.json, text: finding.text) }
    let errors = check.findings.count(where: \.isError)
    guard errors == 0 else {
      throw CommandFailure(.configuration, "the configuration has \(errors == 1 ? "an error" : "\(errors) errors")")
    }
    guard !options.asJSON, let configuration = check.configuration else { return }
    Terminal.print("\(file?.printable ?? "the environment"): \(configuration.verdict)")
  }
}

extension Configuration {
  var verdict: String { "no errors; \(apps.count) \(apps.count == 1 ? "application" : "applications")" }
}

extension ConfigurationFinding {
  /// `pushfleet.json5:3:7: error: prefetch must be …`
  var text: String { [place, isError ? "error" : "warning", words].compactMap(\.self).joined(separator: ": ") }

  /// `pushfleet.json5:3:7: prefetch must be …`
  var sentence: String { [place, words].compactMap(\.self).joined(separator: ": ") }

  private var place: String? {
    if let variable { return variable.printable }
    guard let line, let column else { return file?.printable }
    return (file?.printable ?? "") + ":\(line):\(column)"
  }

  private var words: String { "\(key.map { $0.printable + " " } ?? "")\(problem.printable)" }

  var json: JSONObject {
    [
      "level": isError ? "error" : "warning", "file": file, "line": line, "column": column, "key": key, "variable": variable,
      "problem": problem,
    ]
  }
}
