import Foundation
import PushCore
import Reactor
import Settings

@main
enum Pushfleet {
  static var commands: [any Command.Type] {
    [
      WorkerCommand.self, SendCommand.self, ExplainCommand.self, TopologyCommand.self, FeedbackCommand.self,
      SimulateCommand.self, DevicesCommand.self, TopicsCommand.self, GroupsCommand.self, CampaignsCommand.self,
      AppsCommand.self, CredentialsCommand.self, LanesCommand.self, HeldCommand.self, AuditCommand.self,
      ChannelsCommand.self, GatewayCommand.self, ConsoleCommand.self, WebhooksCommand.self, KeysCommand.self,
      VAPIDCommand.self, DeadCommand.self, ConfigCommand.self, StatusCommand.self, TraceCommand.self, TopCommand.self,
      DoctorCommand.self, CompletionsCommand.self, ManualCommand.self,
    ]
  }

  static func main() {
    StandardStreams.prepare()
    var words = Array(CommandLine.arguments.dropFirst())
    let name = words.isEmpty ? "help" : words.removeFirst()
    switch name {
    case "help", "--help", "-h":
      guard let topic = words.first, !["help", "version"].contains(topic) else { return Terminal.print(overview) }
      return printHelp(of: command(topic))
    case "version", "--version": return Terminal.print("pushfleet \(version)")
    default: break
    }
    let command = command(name)
    if words.contains("--help") || words.contains("-h") { return printHelp(of: command) }
    do {
      try command.run(command.page.options(words))
    } catch {
      let failure = error as? CommandFailure ?? CommandFailure(ExitStatus(of: error), "\(error)")
      Terminal.notice(failure.message)
      exit(failure.status.rawValue)
    }
  }

  private static func printHelp(of command: any Command.Type) {
    Terminal.print(HelpText(width: TerminalWidth.ofOutput ?? HelpText.widest).text(command.page))
  }

  /// Ends the process with status 64 if there is no such command.
  private static func command(_ name: String) -> any Command.Type {
    if let command = commands.first(where: { $0.page.name == name }) { return command }
    let meant = Spelling.nearest(to: name, among: commands.map { $0.page.name } + ["help", "version"]).map {
      ": did you mean `pushfleet \($0)`?"
    }
    Terminal.notice("unknown command \(SafeText.value(name))\(meant ?? "; `pushfleet help` lists them")")
    exit(ExitStatus.usage.rawValue)
  }

  /// With the commit, if the build knows it.
  static let version = Build.version + (Build.commit.map { " (\($0))" } ?? "")

  private static var overview: String {
    """
    pushfleet: push notifications from RabbitMQ to APNs, FCM and browsers

    Usage: pushfleet COMMAND [OPTIONS]

    \(HelpText(width: 80).list(commands.map { ($0.page.name, $0.page.summary) }))

    `pushfleet COMMAND --help` explains a command, with an example.
    \(WrappedText.lines("Exit statuses: \(ExitStatus.words)", room: 79).joined(separator: "\n"))
    """
  }
}
