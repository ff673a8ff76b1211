import Foundation
import TestSupport
import Testing

/// By the shells themselves, with the scripts that the program prints for them.
@Suite("Completions")
struct CompletionTests {
  /// What bash offers for a command line that ends with a word begun.
  private func offered(_ line: String, in site: RegistrySite) throws -> [String] {
    let words = line.split(separator: " ", omittingEmptySubsequences: false).map { "'\($0)'" }.joined(separator: " ")
    return try bash(
      "COMP_WORDS=(\(words)); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _pushfleet; printf '%s\\n' \"${COMPREPLY[@]}\"", in: site)
  }

  /// What bash prints for commands, once it has read the script.
  private func bash(_ commands: String, in site: RegistrySite) throws -> [String] {
    let script = try site.write(try site.run(["completions", "bash"], isConfigured: false).output, "completions")
    let log = try site.write("", "completed")
    let child = try ChildProcess(
      ["/bin/bash", "-c", ". \(script)\n\(commands)"], environment: RegistrySite.environment, output: log)
    #expect(child.wait() == 0)
    return try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n").map(String.init)
  }

  @Test("bash completes commands, actions, options and the words that an option takes")
  func bash() throws {
    let site = try RegistrySite()
    #expect(try offered("pushfleet se", in: site) == ["send"])
    #expect(try offered("pushfleet devices imp", in: site) == ["import"])
    #expect(try offered("pushfleet send --la", in: site) == ["--lane"])
    #expect(try offered("pushfleet send --lane ", in: site) == ["high", "normal"])
    #expect(try offered("pushfleet send --config ", in: site) == [])
    for (line, words) in Self.ofActions { #expect(try offered(line, in: site) == words, "\(line)") }
    let script = try site.run(["completions", "bash"], isConfigured: false).output
    for (option, isFile) in [("config", true), ("rejects", true), ("state", false), ("app", false)] {
      let line = try #require(script.split(separator: "\n").first { $0.contains("'devices --\(option)')") })
      #expect(line.contains("compopt +o default") != isFile, "\(line)")
    }
    let filesAreOffered = """
      completes() { COMP_WORDS=("$@" ''); COMP_CWORD=$#; _pushfleet; }
      compopt() { echo no; }
      completes pushfleet campaigns show; completes pushfleet dead list; completes pushfleet trace
      echo and
      completes pushfleet devices import; completes pushfleet send; completes pushfleet explain --config
      """
    #expect(try bash(filesAreOffered, in: site) == ["no", "no", "no", "and"])
    #expect(try offered("pushfleet help expl", in: site) == ["explain"])
    #expect(try offered("pushfleet hel", in: site) == ["held", "help"])
  }

  /// Options of one action, which others of the command refuse.
  private static let ofActions = [
    ("pushfleet dead drop --y", ["--yes"]), ("pushfleet dead replay --y", []), ("pushfleet dead list --be", []),
    ("pushfleet dead replay --be", ["--because"]), ("pushfleet campaigns list --fo", ["--follow"]),
    ("pushfleet campaigns --limit 5 --fo", ["--follow"]), ("pushfleet campaigns cancel --fo", []),
    ("pushfleet campaigns pause --rea", ["--reason"]), ("pushfleet simulate apns --list", ["--listen"]),
  ]

  /// What fish and zsh offer.
  private static let lines = [
    ("pushfleet se", ["send"]), ("pushfleet devices imp", ["import"]), ("pushfleet send --la", ["--lane"]),
    ("pushfleet send --lane ", ["high", "normal"]), ("pushfleet config ", ["check"]), ("pushfleet help expl", ["explain"]),
    ("pushfleet hel", ["held", "help"]), ("pushfleet help send --la", []), ("pushfleet devices list --state z", []),
    ("pushfleet devices list --app ", []), ("pushfleet campaigns show ", []), ("pushfleet trace ", []),
    ("pushfleet dead replay ", []),
  ]

  /// What fish offers for a command line, without descriptions.
  private func offeredByFish(_ line: String, _ script: String, _ site: RegistrySite) throws -> [String] {
    let log = try site.write("", "completed")
    let child = try ChildProcess(
      ["/usr/bin/fish", "--no-config", "-c", "source \(script); complete -C '\(line)'"],
      environment: RegistrySite.environment.merging(["HOME": site.folder.path]) { $1 },
      output: log)
    #expect(child.wait() == 0)
    return try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n").map { String($0.prefix { $0 != "\t" }) }
  }

  @Test(
    "fish completes the same, and no files in an action's place",
    .enabled(if: isNothingLeftOut || FileManager.default.fileExists(atPath: "/usr/bin/fish")))
  func fish() throws {
    let site = try RegistrySite()
    let script = try site.write(try site.run(["completions", "fish"], isConfigured: false).output, "pushfleet.fish")
    for (line, words) in Self.lines + Self.ofActions { #expect(try offeredByFish(line, script, site) == words, "\(line)") }
    let places = ["send", "send --config", "devices import", "devices list --config", "campaigns show --config", "explain"]
    for words in places + ["config check"] {
      let line = "pushfleet \(words) \(script.dropLast(3))"
      #expect(try offeredByFish(line, script, site) == [script], "\(line)")
    }
  }

  /// What an interactive zsh adds to a command line when the tabulator is pressed: each word that is offered, in a file.
  private static let zsh = """
    PROMPT=
    autoload -U compinit
    compinit -u -D
    source $SCRIPT
    bindkey '^I' complete-word
    compadd() {
      if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\\ * ]]; then builtin compadd "$@"; return; fi
      local -a hits
      builtin compadd -A hits "$@"
      print -rl -- $hits >>$OFFERED
      builtin compadd "$@"
    }
    comppostfuncs=(exit)
    print begun
    """

  /// Types a line and the tabulator on a terminal.
  private static let typist = """
    zmodload zsh/zpty
    zpty shell "SCRIPT=$1 OFFERED=$2 zsh -f -i"
    zpty -w shell "source $3"
    zpty -r shell text '*begun*'
    zpty -w -n shell "$4"$'\\t'
    while zpty -r shell text; do :; done
    """

  @Test(
    "zsh completes the same, and files where a file can stand",
    .enabled(if: isNothingLeftOut || FileManager.default.fileExists(atPath: "/usr/bin/zsh")))
  func zsh() throws {
    let site = try RegistrySite()
    let script = try site.write(try site.run(["completions", "zsh"], isConfigured: false).output, "_pushfleet")
    let shell = try site.write(Self.zsh, "shell.zsh")
    let typist = try site.write(Self.typist, "typist.zsh")
    let environment = RegistrySite.environment.merging(["HOME": site.folder.path]) { $1 }
    let files = ["send", "devices import", "campaigns show --config", "config check"]
      .map { ("pushfleet \($0) \(script.dropLast(4))", ["_pushfleet"]) }
    for (line, words) in Self.lines + Self.ofActions + files {
      let offered = try site.write("", "offered")
      let child = try ChildProcess(
        ["/usr/bin/zsh", "-f", typist, script, offered, shell, line], environment: environment, output: nil)
      #expect(child.wait() == 0, "\(child.outputSoFar)")
      #expect(try String(contentsOfFile: offered, encoding: .utf8).split(separator: "\n") == words.map { $0[...] }, "\(line)")
    }
  }
}
