enum CompletionsCommand: Command {
  static let page = CommandPage(
    "completions", "print a shell's completion script for commands and options",
    forms: [.action("bash|zsh|fish")],
    """
    Prints a completion script. For bash, read it by `source <(pushfleet completions bash)`, or save it as
    /usr/share/bash-completion/completions/pushfleet. For zsh, save it as _pushfleet in a folder of $fpath. For fish, save it as
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
