import Simulation

struct Usage: Error { let problem: String }

/// What the command line asks for.
struct Options {
  var first: UInt64 = 1
  var count: UInt64 = 1
  var kinds: Set<Affliction>?
  var events: Set<Int>?
  var isTraced = false
  var wantsHelp = false
  /// Failing seeds after which the search ends: each is made smaller, which takes its time.
  private(set) var mostFailures = 5
  /// What fails is not made smaller.
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
      case "--first-failure":
        mostFailures = 1
        isPlain = true
      case "-h", "--help": wantsHelp = true
      default: throw Usage(problem: "unexpected argument \(word)")
      }
    }
  }

  private static func number(_ option: String, _ rest: inout ArraySlice<String>) throws(Usage) -> UInt64 {
    guard let text = rest.popFirst(), let number = UInt64(text), number < 1 << 62 else {
      throw Usage(problem: "\(option) takes a number")
    }
    return number
  }

  private static func kinds(_ rest: inout ArraySlice<String>) throws(Usage) -> Set<Affliction> {
    guard let text = rest.popFirst() else { throw Usage(problem: "--kinds takes kinds of trouble, or none") }
    var kinds: Set<Affliction> = []
    if text == "none" { return kinds }
    for name in text.split(separator: ",") {
      guard let kind = Affliction(rawValue: String(name)) else { throw Usage(problem: "there is no kind \(name)") }
      kinds.insert(kind)
    }
    return kinds
  }

  private static func events(_ rest: inout ArraySlice<String>) throws(Usage) -> Set<Int> {
    guard let text = rest.popFirst() else { throw Usage(problem: "--events takes numbers of events") }
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
    happens; docs/simulation.md says what is checked.

    usage: fleetsim [--seed N] [--seeds N] [--kinds KIND,… | --kinds none] [--events N,…] [--trace]
                    [--first-failure]

      --seed N      the first seed (1)
      --seeds N     how many, one after the other (1)
      --kinds       what befalls the fleet, in the place of what the seed chooses
      --events      which events of it, by their places in time
      --trace       every line of one seed
      --first-failure  ends with the first seed that fails, as it is

    examples:
      fleetsim --seeds 200
      fleetsim --seed 4711 --trace
      fleetsim --seed 4711 --kinds workerKilled,pathDead --events 0,2 --trace

    kinds: \(Affliction.allCases.map(\.rawValue).joined(separator: ", "))

    Ends with 1 when a seed fails, after having printed its shortest form.
    """
  }
}
