/// A shell for which there is a completion script.
enum Shell: String, CaseIterable {
  case bash, zsh, fish

  func script(_ pages: [CommandPage]) -> String {
    switch self {
    case .bash: Self.bash(pages)
    case .zsh: Self.zsh(pages)
    case .fish: Self.fish(pages)
    }
  }

  private static let others = [("help", "list the commands, or explain one"), ("version", "print the version")]

  private static func bash(_ pages: [CommandPage]) -> String {
    let noFiles = "compopt +o default 2>/dev/null"
    var cases: [String] = []
    for page in pages {
      for option in page.options where option.value != nil {
        let ending = option.takesFile ? "" : "; \(noFiles)"
        cases.append("    '\(page.name) --\(option.name)') words=\(quoted(option.choices.joined(separator: " ")))\(ending) ;;")
      }
      if !page.actions.isEmpty {
        cases.append("    '\(page.name) \(page.name)') words='\(page.actions.joined(separator: " "))' ;;")
      }
      let files =
        switch page.actionsOnFiles {
        case nil: ""
        case []?: "; \(noFiles)"
        case let actions?: "; case ${COMP_WORDS[2]} in \(actions.joined(separator: "|"))) ;; *) \(noFiles) ;; esac"
        }
      cases.append("    '\(page.name) '*) words='\(page.options.map { "--\($0.name)" }.joined(separator: " "))'\(files) ;;")
    }
    return """
      # bash completion of pushfleet. Read by: source <(pushfleet completions bash)
      _pushfleet() {
        local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words=
        COMPREPLY=()
        if [ "$COMP_CWORD" -eq 1 ]; then
          mapfile -t COMPREPLY < <(compgen -W '\((pages.map(\.name) + others.map(\.0)).joined(separator: " "))' -- "$word")
          return
        fi
        case "${COMP_WORDS[1]} $before" in
          'help help') words='\(pages.map(\.name).joined(separator: " "))' ;;
      \(cases.joined(separator: "\n"))
        esac
        # Without a fitting word, the shell offers files.
        [ -z "$words" ] || mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
      }
      complete -o default -F _pushfleet pushfleet
      """
  }

  private static func zsh(_ pages: [CommandPage]) -> String {
    let cases = pages.map { page in
      let values = page.options.filter { $0.value != nil }.map { option in
        let offer =
          option.takesFile ? "_files; " : option.choices.isEmpty ? "" : "compadd -- \(option.choices.joined(separator: " ")); "
        return "        --\(option.name)) \(offer)return ;;"
      }
      let actions =
        page.actions.isEmpty
        ? "" : "\n      if (( CURRENT == 3 )); then compadd -- \(page.actions.joined(separator: " ")); return; fi"
      let files =
        switch page.actionsOnFiles {
        case nil: "_files; "
        case []?: ""
        case let actions?: "[[ $words[3] == (\(actions.joined(separator: "|"))) ]] && _files; "
        }
      let options = page.options.map { "        \(quoted("--\($0.name):\($0.words ?? "")"))" }
      return """
            \(page.name))
              case $words[CURRENT-1] in
        \(values.joined(separator: "\n"))
              esac\(actions)
              if [[ $words[CURRENT] != -* ]]; then \(files)return; fi
              entries=(
        \(options.joined(separator: "\n"))
              )
              _describe option entries ;;
        """
    }
    return """
      #compdef pushfleet
      # zsh completion of pushfleet: a file _pushfleet in a folder of $fpath.
      _pushfleet() {
        local -a entries
        if (( CURRENT == 2 )); then
          entries=(
      \((pages.map { ($0.name, $0.summary) } + others).map { "      \(quoted("\($0):\($1)"))" }.joined(separator: "\n"))
          )
          _describe command entries
          return
        fi
        case $words[2] in
          help) (( CURRENT == 3 )) && compadd -- \(pages.map(\.name).joined(separator: " ")) ;;
      \(cases.joined(separator: "\n"))
        esac
      }
      if [[ $funcstack[1] == _pushfleet ]]; then _pushfleet "$@"; else compdef _pushfleet pushfleet; fi
      """
  }

  private static func fish(_ pages: [CommandPage]) -> String {
    let names = (pages.map { ($0.name, $0.summary) } + others).map { name, summary in
      "complete -c pushfleet -n __fish_use_subcommand -f -a \(name) -d \(quoted(summary))"
    }
    let lines = pages.flatMap { page in
      let within = "complete -c pushfleet -n '__pushfleet_command \(page.name)'"
      let others = page.actions.filter { page.actionsOnFiles?.contains($0) != true }
      let mayHaveFiles = page.actionsOnFiles == nil || others.isEmpty && !page.actions.isEmpty
      let withoutFiles = mayHaveFiles ? nil : ([page.name] + others).joined(separator: " ")
      return page.actions.map { "complete -c pushfleet -n '__pushfleet_action_of \(page.name)' -f -a \($0)" }
        + (withoutFiles.map { ["complete -c pushfleet -n '__pushfleet_command \($0)' -f"] } ?? [])
        + page.options.map { option in
          let value =
            option.value == nil
            ? ""
            : option.takesFile
              ? " -r -F" : option.choices.isEmpty ? " -x" : " -x -a \(quoted(option.choices.joined(separator: " ")))"
          return "\(within) -l \(option.name)\(value)" + (option.words.map { " -d \(quoted($0))" } ?? "")
        }
    }
    return """
      # fish completion of pushfleet: ~/.config/fish/completions/pushfleet.fish
      function __pushfleet_command
        set -l words (commandline -poc)
        test (count $words) -ge 2; and test $words[2] = $argv[1]
        and begin; test (count $argv) -eq 1; or contains -- "$words[3]" $argv[2..]; end
      end
      function __pushfleet_action_of
        set -l words (commandline -poc)
        test (count $words) -eq 2; and test $words[2] = $argv[1]
      end
      \(names.joined(separator: "\n"))
      complete -c pushfleet -n '__pushfleet_action_of help' -f -a '\(pages.map(\.name).joined(separator: " "))'
      \(lines.joined(separator: "\n"))
      """
  }

  /// Quotes the text as one word for each of the shells.
  private static func quoted(_ text: String) -> String { "'" + text.replacing("'", with: "’").replacing("\\", with: "/") + "'" }
}
