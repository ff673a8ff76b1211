import Simulation

struct Usage: Error { let problem: String }

struct Options {
  var first: UInt64 = 1
  private var count: UInt64?
  var kinds: Set<FaultKind>?
  var events: Set<Int>?
  var isTraced = false
  private var isFixed = false
  var wantsHelp = false
  /// Failing seeds after which the search ends, because reducing each takes time.
  private(set) var mostFailures = 5
  /// True if failing seeds are not reduced.
  private(set) var isPlain = false

  init(_ arguments: [String]) throws(Usage) {
    var rest = arguments[...]
    while let word = rest.popFirst() {
      switch word {
      case "--seed": first = try Self.number(word, &rest)
      case "--seeds": count = max(1, try Self.number(word, &rest))
      case "--kinds": kinds = try Self.kinds(&rest)
      case "--events": events = try Self.events(&rest)
      case "--trace": isTraced = true
      case "--fixed": isFixed = true
      case "--first-failure":
        mostFailures = 1
        isPlain = true
      case "-h", "--help": wantsHelp = true
      default: throw Usage(problem: "unexpected argument \(word)")
      }
    }
    guard !isFixed || first == 1 && kinds == nil && events == nil && !isTraced else {
      throw Usage(problem: "--fixed goes with --seeds alone")
    }
  }

  var runs: AnyCollection<Run> {
    guard !isFixed else { return AnyCollection(Run.fixed.prefix(Int(count ?? .max >> 1))) }
    let seeds = first..<first + (count ?? 1)
    return AnyCollection(seeds.lazy.map { [kinds, events] in Run(seed: $0, kinds: kinds, events: events) })
  }

  private static func number(_ option: String, _ rest: inout ArraySlice<String>) throws(Usage) -> UInt64 {
    guard let text = rest.popFirst(), let number = UInt64(text), number < 1 << 62 else {
      throw Usage(problem: "\(option) needs a number")
    }
    return number
  }

  private static func kinds(_ rest: inout ArraySlice<String>) throws(Usage) -> Set<FaultKind> {
    guard let text = rest.popFirst() else { throw Usage(problem: "--kinds needs kinds of faults, or none") }
    var kinds: Set<FaultKind> = []
    if text == "none" { return kinds }
    for name in text.split(separator: ",") {
      guard let kind = FaultKind(rawValue: String(name)) else { throw Usage(problem: "unknown kind \(name)") }
      kinds.insert(kind)
    }
    return kinds
  }

  private static func events(_ rest: inout ArraySlice<String>) throws(Usage) -> Set<Int> {
    guard let text = rest.popFirst() else { throw Usage(problem: "--events needs numbers of events") }
    var events: Set<Int> = []
    for word in text.split(separator: ",") {
      guard let number = Int(word) else { throw Usage(problem: "\(word) is not the number of an event") }
      events.insert(number)
    }
    return events
  }

  static var help: String {
    """
    fleetsim: a fleet of workers, its broker, providers and registry in one thread and in virtual time. A seed decides everything that
    happens; docs/internals/simulation.md says what is checked.

    usage: fleetsim [--seed N] [--seeds N] [--kinds KIND,… | --kinds none] [--events N,…] [--trace]
                    [--first-failure]
           fleetsim --fixed [--seeds N]

      --seed N      the first seed (1)
      --seeds N     number of seeds to run (1)
      --kinds       kinds of faults, instead of the seed's choice
      --events      numbers of the events to keep, in order of time
      --trace       print every line of one seed
      --fixed       run each kind of fault by itself, and the runs that failed once
      --first-failure  stop at the first failing seed and don't reduce it

    examples:
      fleetsim --seeds 200
      fleetsim --seed 4711 --trace
      fleetsim --seed 4711 --kinds workerKilled,pathDead --events 0,2 --trace

    kinds: \(FaultKind.allCases.map(\.rawValue).joined(separator: ", "))

    Exits with 1 if a seed fails, and prints the shortest form of the failure.
    """
  }
}
