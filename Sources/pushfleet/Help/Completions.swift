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
      let endings = page.endings.map { pattern, options, takesFiles in
        "\(pattern)) words='\(options.map { "--\($0.name)" }.joined(separator: " "))'\(takesFiles ? "" : "; \(noFiles)") ;;"
      }
      cases.append("    '\(page.name) '*) case ${COMP_WORDS[2]} in \(endings.joined(separator: " ")) *) \(noFiles) ;; esac ;;")
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
      let endings = page.endings.map { pattern, options, takesFiles in
        let entries = options.map { quoted("--\($0.name):\($0.words ?? "")") }.joined(separator: " ")
        return "        \(pattern)) \(takesFiles ? "files=1; " : "")entries=(\(entries)) ;;"
      }
      return """
            \(page.name))
              case $words[CURRENT-1] in
        \(values.joined(separator: "\n"))
              esac\(actions)
              case $words[3] in
        \(endings.joined(separator: "\n"))
              esac
              if [[ $words[CURRENT] == -* ]]; then _describe option entries; elif (( files )); then _files; fi ;;
        """
    }
    return """
      #compdef pushfleet
      # zsh completion of pushfleet: a file _pushfleet in a folder of $fpath.
      _pushfleet() {
        local -a entries
        local -i files=0
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
      func within(_ patterns: [String]) -> String {
        let words = patterns.map { $0.replacing("|-*", with: " -").replacing("*", with: "") }
        return "complete -c pushfleet -n '__pushfleet_command \(([page.name] + words).joined(separator: " "))'"
      }
      return page.actions.map { "complete -c pushfleet -n '__pushfleet_action_of \(page.name)' -f -a \($0)" }
        + page.endings.filter { !$0.takesFiles }.map { "\(within([$0.pattern])) -f" }
        + page.options.map { option in
          let value =
            option.value == nil
            ? ""
            : option.takesFile
              ? " -r -F" : option.choices.isEmpty ? " -x" : " -x -a \(quoted(option.choices.joined(separator: " ")))"
          let place = within(page.endings.filter { $0.options.contains(option) }.map(\.pattern))
          return "\(place) -l \(option.name)\(value)" + (option.words.map { " -d \(quoted($0))" } ?? "")
        }
    }
    return """
      # fish completion of pushfleet: ~/.config/fish/completions/pushfleet.fish
      function __pushfleet_command
        set -l words (commandline -poc)
        test (count $words) -ge 2; and test $words[2] = $argv[1]
        and begin
          # A dash stands for an option, or for no word.
          string match -q -- '-*' "$words[3]-"; and set words[3] -
          test (count $argv) -eq 1; or contains -- $words[3] $argv[2..]
        end
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
