enum CompletionsCommand: Command {
  static let page = CommandPage(
    "completions", "print what a shell needs to complete commands and options",
    forms: [.action("bash|zsh|fish")],
    """
    Prints a script for the shell: for bash read by `source <(pushfleet completions bash)` or kept in
    /usr/share/bash-completion/completions/pushfleet, for zsh a file _pushfleet in a folder of $fpath, for fish
    ~/.config/fish/completions/pushfleet.fish.
    """,
    example: "pushfleet completions fish > ~/.config/fish/completions/pushfleet.fish")

  static func run(_ options: Options) throws {
    if let shell = Shell(rawValue: options.action) { Terminal.print(shell.script(Pushfleet.commands.map { $0.page })) }
  }
}

enum ManualCommand: Command {
  static let page = CommandPage(
    "manual", "print the manual page",
    forms: [.form()],
    "Prints every command's help as a page for man(1).",
    example: "pushfleet manual | man -l -")

  static func run(_ options: Options) throws {
    Terminal.print(Manual.page(Pushfleet.commands.map { $0.page }, version: Pushfleet.version))
  }
}
