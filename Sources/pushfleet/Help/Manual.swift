/// The manual page, in man(7) format.
enum Manual {
  static func page(_ pages: [CommandPage], version: String) -> String {
    ([head(version)] + pages.map(section) + [tail]).joined(separator: "\n")
  }

  private static func head(_ version: String) -> String {
    """
    .TH PUSHFLEET 1 "" "pushfleet \(version)"
    .SH NAME
    pushfleet \\- push notifications from RabbitMQ to APNs, FCM and browsers
    .SH SYNOPSIS
    .B pushfleet
    .I COMMAND
    .RI [ OPTIONS ]
    .SH DESCRIPTION
    Workers consume push requests from RabbitMQ, deliver them to APNs, FCM and push services of browsers, and publish the outcome of each.
    Results go to standard output, everything else to standard error.
    .SH COMMANDS
    """
  }

  /// Columns of unfilled text, without the terminal's margin.
  private static let width = 72

  private static func section(_ page: CommandPage) -> String {
    var lines = [".SS \(escaped(page.name)) \\- \(escaped(page.summary))", ".nf"]
    lines += page.usage.map(line) + [".fi"]
    for paragraph in paragraphs(page) { lines += [".PP", line(paragraph)] }
    for operand in page.operands { lines += [".TP", ".I \(escaped(operand.name))", line(operand.words ?? "")] }
    for option in page.options {
      guard let words = option.words else { continue }
      let value = option.knownValue.map { " \\fI\(escaped($0))\\fR" } ?? ""
      lines += [".TP", ".B \\-\\-\(escaped(option.name))\(value)", line(words)]
    }
    lines += [".PP", "Example:", ".nf", line(WrappedText.command(page.example, width: width)), ".fi"]
    return lines.joined(separator: "\n")
  }

  /// Lists without options are shown as paragraphs.
  private static func paragraphs(_ page: CommandPage) -> [String] {
    page.blocks.flatMap { block in
      switch block {
      case .text(let text): text.split(separator: "\n\n").map(String.init)
      case .list(let entries):
        entries.contains(where: \.isOption) ? [] : [HelpText(width: .max).list(entries.compactMap(\.row))]
      }
    }
  }

  private static let tail = """
    .SH EXIT STATUS
    \(ExitStatus.words)
    .SH ENVIRONMENT
    .TP
    .B PUSHFLEET_CONFIG
    The configuration, if there is no \\-\\-config. Each of its values can be given as PUSHFLEET_ and the value's path.
    """

  /// Escapes text, so that no line is taken for a request.
  private static func line(_ text: String) -> String {
    escaped(text).split(separator: "\n", omittingEmptySubsequences: false)
      .map { $0.hasPrefix(".") || $0.hasPrefix("'") ? "\\&" + $0 : String($0) }.joined(separator: "\n")
  }

  private static func escaped(_ text: String) -> String { text.replacing("\\", with: "\\e").replacing("-", with: "\\-") }
}
