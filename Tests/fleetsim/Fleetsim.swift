import Foundation
import Simulation

@main
enum Fleetsim {
  static func main() {
    do throws(Usage) {
      let options = try Options(Array(CommandLine.arguments.dropFirst()))
      exit(run(options))
    } catch {
      FileHandle.standardError.write(Data("fleetsim: \(error.problem); see fleetsim --help\n".utf8))
      exit(64)
    }
  }

  private static func run(_ options: Options) -> Int32 {
    if options.wantsHelp {
      print(Options.help)
      return 0
    }
    do {
      if options.isTraced { return try trace(options) }
      return try search(options)
    } catch {
      FileHandle.standardError.write(Data("fleetsim: the simulation can't start: \(error)\n".utf8))
      return 70
    }
  }

  private static func trace(_ options: Options) throws -> Int32 {
    let outcome = try Run(seed: options.first, kinds: options.kinds, events: options.events).outcome(keepsTrace: true)
    for line in outcome.trace { print(line) }
    print(outcome.summary)
    return outcome.failures.isEmpty ? 0 : 1
  }

  private static func search(_ options: Options) throws -> Int32 {
    let runs = options.runs
    var progress = Progress(total: UInt64(runs.count))
    var totals = Totals()
    CrashNote.install()
    for run in runs {
      CrashNote.seed.store(run.seed, ordering: .relaxed)
      let outcome = try run.outcome()
      totals.add(outcome)
      if run.seed % 16 == 0 || runs.count == 1 {
        let again = try run.outcome()
        if again.traceHash != outcome.traceHash {
          totals.failed += 1
          progress.clear()
          print("seed \(run.seed) does not repeat itself: \(outcome.traceHash) and \(again.traceHash)")
        }
      }
      if run.events == nil, let kinds = run.kinds, Set(outcome.faultKinds) != kinds {
        totals.failed += 1
        progress.clear()
        print("seed \(run.seed) has other kinds of faults: \(outcome.faultKinds.map(\.rawValue))")
      }
      if !outcome.failures.isEmpty {
        progress.clear()
        let shortest = run.kinds == nil && !options.isPlain ? try Reduction(outcome) : nil
        print((shortest?.outcome ?? outcome).summary)
        if let shortest { print("  again: fleetsim \(shortest.options) --trace") }
        if totals.failed >= options.mostFailures { break }
      }
      progress.step(totals.failed)
    }
    progress.clear()
    print(totals.summary)
    return totals.failed == 0 ? 0 : 1
  }
}

extension FleetSimulation.Outcome {
  var summary: String {
    let kinds = faultKinds.isEmpty ? "no trouble" : faultKinds.map(\.rawValue).joined(separator: ", ")
    let lines = ["seed \(seed): \(failures.isEmpty ? "ok" : "FAILED"); \(kinds)"]
    return (lines + failures.prefix(5).map { "  \($0)" }).joined(separator: "\n")
  }
}

struct Totals {
  var failed = 0
  private var seeds = 0
  private var requests = 0
  private var pushes = 0
  private var duplicates = 0
  private var (timed, timedAfterFault) = (0, 0)
  private var delays = Delays()
  private var seconds = 0.0

  mutating func add(_ outcome: FleetSimulation.Outcome) {
    seeds += 1
    requests += outcome.requests
    pushes += outcome.pushes
    duplicates += outcome.duplicates
    timed += outcome.timed
    timedAfterFault += outcome.timedAfterFault
    delays.merge(outcome.delays)
    seconds += outcome.seconds
    if !outcome.failures.isEmpty { failed += 1 }
  }

  var summary: String {
    """
    \(seeds) seeds, \(failed) failed: \(requests) requests, \(pushes) pushes, \(duplicates) of them sent again, \
    \(Int(seconds / 3600)) hours of fleets' time
    \(timed) requests had to be sent within seconds, \(timedAfterFault) of them after trouble\(apart)
    """
  }

  /// How long pushes waited because of the faults of applications and push services.
  private var apart: String {
    guard delays.beside > 0 || !delays.after.isEmpty else { return "" }
    let after = delays.after.sorted { $0.key.rawValue < $1.key.rawValue }.map { "\($0.key.rawValue) \(tenths($0.value))" }
    return
      "\nat worst a push waited \(tenths(delays.beside)) s beside the trouble of other applications and push services"
      + (after.isEmpty ? "" : "; seconds until the first one after " + after.joined(separator: ", "))
  }

  private func tenths(_ seconds: Double) -> String { "\((seconds * 10).rounded() / 10)" }
}
