import Reactor
import Settings

enum TopCommand: Command {
  static let page = CommandPage(
    "top", "the fleet live, refreshed each second",
    forms: [.form("--config", ["--once"], ["--pools"], ["--json"])],
    """
    Shows the same as `pushfleet status`, refreshed each second, until q or Ctrl-C. p switches between all credentials and only
    those in trouble. The arrow keys, Page Up, Page Down and Home scroll if the screen is too short. Ctrl-Z doesn't stop it. If
    standard output is not a terminal, or TERM is dumb or missing, it prints once, or with --json each second.
    """,
    [
      .config(), .flag("once", "print once"), .flag("pools", "start with all credentials"),
      .json("one JSON object per queue, worker and campaign, and one for the fleet, each second"),
    ],
    example: "pushfleet top --config pushfleet.json5")

  static func run(_ options: Options) throws {
    guard Terminal.hasControls, !options.asJSON, !options.has("once") else {
      return try StatusCommand.run(options, every: options.asJSON && !options.has("once") ? 1 : nil)
    }
    try FleetScreen(try options.configuration(), listsPools: options.has("pools")).run()
  }
}

/// Draws the fleet on the whole terminal; restores the previous screen at the end.
private final class FleetScreen {
  private static let enter = "\u{1B}[?1049h\u{1B}[?25l"
  private static let leave = "\u{1B}[?25h\u{1B}[?1049l"
  /// Seconds between two reads of the keyboard.
  private static let keyPause = 0.1
  private static let windowChanged: Int32 = 28
  private static let terminalStop: Int32 = 20

  private let configuration: Configuration
  private var watch: FleetWatch?
  private var picture: FleetPicture?
  private var keyboard: RawTerminal?

  private var listsPools: Bool
  private var view = ScrolledView()

  init(_ configuration: Configuration, listsPools: Bool) {
    self.configuration = configuration
    self.listsPools = listsPools
  }

  func run() throws {
    let watch = try FleetWatch(configuration, every: 1) { [unowned self] in
      picture = $0
      draw()
    }
    self.watch = watch
    watch.handlesSignals = false
    watch.asksForPools = listsPools
    Signals.ignore([Self.terminalStop])
    let signals = try Signals(loop: watch.loop, [1, 2, 15, Self.windowChanged]) { [unowned self] signal in
      if signal == Self.windowChanged { draw() } else { watch.leave() }
    }
    keyboard = RawTerminal()
    Terminal.write(Array((Self.enter + "\u{1B}[H\u{1B}[2Jasking the broker…").utf8))
    defer {
      Terminal.write(Array(Self.leave.utf8))
      keyboard?.restore()
      signals.close()
    }
    readKeys()
    try watch.run()
  }

  private func readKeys() {
    guard let keyboard, let watch else { return }
    guard let keys = keyboard.keys() else { return watch.leave() }
    for key in TerminalKey.read(keys) {
      switch key {
      case .quit: return watch.leave()
      case .pools:
        listsPools.toggle()
        watch.asksForPools = listsPools
      case .move(let move): view.move(move)
      }
      draw()
    }
    watch.loop.schedule(after: Self.keyPause) { [weak self] in self?.readKeys() }
  }

  private func draw() {
    guard let picture else { return }
    let width = TerminalWidth.ofOutput ?? 80
    let height = TerminalWidth.linesOfOutput ?? 24
    let lines = FleetText(picture: picture, width: width, hasColour: Terminal.hasColour, listsPools: listsPools).lines
    let foot = "q ends, p \(listsPools ? "shows only providers in trouble" : "shows all providers")"
    let text = view.screen(lines, width: width, height: height, foot: foot).map { $0 + "\u{1B}[K" }.joined(separator: "\r\n")
    Terminal.write(Array(("\u{1B}[H" + text + "\u{1B}[J").utf8))
  }
}
