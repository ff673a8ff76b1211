enum CompletionsCommand: Command {
  static let name = "completions"
  static let summary = "print what a shell needs to complete commands and options"
  static let help = """
    Usage: pushfleet completions bash|zsh|fish

    Prints a script for the shell: for bash read by `source <(pushfleet completions bash)` or kept in
    /usr/share/bash-completion/completions/pushfleet, for zsh a file _pushfleet in a folder of $fpath, for fish
    ~/.config/fish/completions/pushfleet.fish.

    Example: pushfleet completions fish > ~/.config/fish/completions/pushfleet.fish
    """

  static func run(_ arguments: inout [String]) throws {
    let word = try Subcommand.take(&arguments, of: Shell.allCases.map(\.rawValue))
    try Options(arguments, values: []).refuseOperands()
    if let shell = Shell(rawValue: word) { Terminal.print(shell.script(Pushfleet.commands.map(CommandPage.init))) }
  }
}

enum ManualCommand: Command {
  static let name = "manual"
  static let summary = "print the manual page"
  static let help = """
    Usage: pushfleet manual

    Prints every command's help as a page for man(1).

    Example: pushfleet manual | man -l -
    """

  static func run(_ arguments: inout [String]) throws {
    try Options(arguments, values: []).refuseOperands()
    Terminal.print(Manual.page(Pushfleet.commands.map(CommandPage.init), version: Pushfleet.version))
  }
}
