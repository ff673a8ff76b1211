import Foundation
import Reactor
import Storage
import Worker

/// The command line: finds the command, runs it, turns its error into a sentence and an exit status.
@main
enum Pushfleet {
  static var commands: [any Command.Type] {
    [
      WorkerCommand.self, SendCommand.self, ExplainCommand.self, TopologyCommand.self, FeedbackCommand.self,
      SimulateCommand.self, DevicesCommand.self, TopicsCommand.self, GroupsCommand.self, CampaignsCommand.self,
    ]
  }

  static func main() {
    StandardStreams.prepare()
    var words = Array(CommandLine.arguments.dropFirst())
    let name = words.isEmpty ? "help" : words.removeFirst()
    switch name {
    case "help", "--help", "-h":
      if let command = commands.first(where: { $0.name == words.first }) { return Terminal.print(command.help) }
      return Terminal.print(overview)
    case "version", "--version": return Terminal.print("pushfleet \(version)")
    default: break
    }
    guard let command = commands.first(where: { $0.name == name }) else {
      Terminal.complain("there is no command \"\(name)\"; `pushfleet help` lists them")
      exit(ExitStatus.usage.rawValue)
    }
    if words.contains("--help") || words.contains("-h") { return Terminal.print(command.help) }
    do {
      try command.run(&words)
    } catch let failure as CommandFailure {
      Terminal.complain(failure.message)
      exit(failure.status.rawValue)
    } catch let error as ConfigurationError {
      Terminal.complain("\(error)")
      exit(ExitStatus.configuration.rawValue)
    } catch let error as StoreError {
      Terminal.complain("\(error)")
      exit(ExitStatus(of: error).rawValue)
    } catch {
      Terminal.complain("\(error)")
      exit(ExitStatus.unavailable.rawValue)
    }
  }

  static let version = "0.1.0"

  private static var overview: String {
    let width = commands.map { $0.name.count }.max() ?? 0
    let lines = commands.map { "  \($0.name.padding(toLength: width, withPad: " ", startingAt: 0))  \($0.summary)" }
    return """
      pushfleet: push notifications from RabbitMQ to APNs and FCM

      Usage: pushfleet COMMAND [OPTIONS]

      \(lines.joined(separator: "\n"))

      `pushfleet COMMAND --help` tells more and shows an example.
      Exit statuses: 0 done, 64 usage, 65 bad input, 69 broker or provider unreachable, 78 bad configuration.
      """
  }
}
