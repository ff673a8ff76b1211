import Broker
import PushCore
import Reactor

/// A queue whose messages operators look at and drop, with the words for them.
struct LetterPlace {
  private let letters: LetterQueue
  /// The command.
  let name: String
  /// The command's action.
  var action = ""
  private let one: String
  private let many: String
  /// The most messages to look at; nil for the usual bound.
  private var most: Int?

  static let dead = LetterPlace(.dead)

  init(_ letters: LetterQueue) {
    self.letters = letters
    (name, one, many) =
      switch letters {
      case .dead: ("dead", "dead letter", "dead letters")
      case .held: ("held", "held request", "held requests")
      case .lane: ("lanes", "request", "requests")
      }
  }

  /// For the broker's list of connections.
  var connectionName: String { "pushfleet \(name) \(action)" }

  func `for`(_ action: String, most: Int? = nil) -> LetterPlace {
    var place = self
    place.action = action
    place.most = most
    return place
  }

  func queue(_ topology: Topology) -> String { letters.name(topology) }
  func queues(_ topology: Topology) -> [String] { letters.queues(topology) }
  /// A queue that is only declared on first use.
  var isOptional: Bool { letters.heldApp != nil }

  /// The most messages to look at. Each one returns to its queue, and a worker processes a request alone that has returned twice.
  var mostVisited: Int { most ?? (letters == .dead || action == "drop" ? .max : 1_000) }
  /// Returns of a message from which operators are warned. The broker gives it up after ``Topology/deliveryLimit``.
  var mostReturns: Int64 { letters == .dead ? .max : Topology.deliveryLimit / 2 }

  func count(_ count: Int) -> String { count == 1 ? "1 \(one)" : "\(Figures.count(count)) \(many)" }

  func list(_ options: Options, _ filter: LetterFilter) throws {
    var groups = LetterGroups()
    let look = try LetterLook(try options.configuration(), filter, self.for("list")) { groups.add($0) }
    try look.run()
    if options.asJSON {
      for group in groups.json { Terminal.print(group) }
    } else if groups.count == 0 {
      Terminal.say("no \(many)" + others(look))
    } else {
      Terminal.print(groups.text(width: Terminal.width))
      Terminal.say("\(count(groups.count))\(others(look))")
    }
  }

  func show(_ options: Options, _ filter: LetterFilter) throws {
    let asJSON = options.asJSON
    // Readers page slowly, so the letters go back to the queue before the first is printed.
    let buffer = try TextBuffer()
    var isFirst = true
    let look = try LetterLook(
      try options.configuration(), filter, self.for("show"), maximumBody: 512 << 20
    ) { letter in
      buffer.append(asJSON ? letter.json.line : Array(((isFirst ? "" : "\n") + letter.text).utf8))
      isFirst = false
    }
    try look.run()
    try buffer.print()
    if look.matched == 0, !asJSON { Terminal.say("no \(many)" + others(look)) }
  }

  /// The total, if the filter leaves some out.
  private func others(_ look: LetterLook) -> String {
    look.expected > look.matched ? " of \(Figures.count(look.expected))" : ""
  }

  /// - Parameters:
  ///   - action: the action's name in the audit.
  ///   - check: called before anything is removed, and once a second while it is; throws if it may not be.
  func drop(
    _ options: Options, _ filter: LetterFilter, as action: String? = nil, check: @escaping () throws -> Void = {}
  ) throws {
    let isSure = options.has("yes")
    let isDry = options.has("dry-run")
    var filter = filter
    guard isSure || isDry || Terminal.canAsk else {
      let hint = action == nil ? ", or --dry-run to see how many" : ""
      throw CommandFailure(.usage, "\(action ?? "drop") removes \(many) for good: use --yes\(hint)")
    }
    try check()
    if !isSure || isDry {
      let count = try matching(options, filter)
      if isDry || count == 0 { return tell(count, options, isDry: isDry) }
      guard Terminal.confirms("Drop \(self.count(count)) for good?") else {
        throw CommandFailure(.interrupted, "nothing was dropped")
      }
      try check()
      filter.limit = count
    }
    let look = try LetterLook(try options.configuration(), filter, self.for("drop"), isRemoving: true)
    var ended: CommandFailure?
    func watch() {
      look.loop.schedule(after: 1) { [weak look] in
        do { try check() } catch let failure as CommandFailure {
          ended = failure
          look?.stop()
          return
        } catch { Terminal.notice("\(error)") }
        watch()
      }
    }
    watch()
    try RegistrySession.recording(
      options, action ?? "\(name) drop", self, filter, reasonIn: action == nil ? "because" : "reason", look)
    tell(look.matched, options, isDry: false)
    if let ended { throw ended }
  }

  /// Counts the messages that the filter selects. If it selects all of the queue's, none is taken out of the queue for that.
  private func matching(_ options: Options, _ filter: LetterFilter) throws -> Int {
    let countsQueue = letters != .dead && filter.members.allSatisfy { $0.name == "limit" }
    let count = try LetterLook(try options.configuration(), filter, self.for("drop", most: countsQueue ? 0 : nil))
    try count.run()
    return countsQueue ? min(count.expected, filter.limit ?? .max) : count.matched
  }

  private func tell(_ count: Int, _ options: Options, isDry: Bool) {
    guard options.asJSON else {
      return Terminal.say(isDry ? "\(self.count(count)) would be dropped" : "pushfleet: \(self.count(count)) dropped")
    }
    Terminal.print([isDry ? "would_drop" : "dropped": count, "dry_run": JSONOptional(isDry ? true : nil)] as JSONObject)
  }
}
