import HTTP2
import MachineDriver
import TestSupport
import Testing
import Wire

@Suite struct ClientModelTests {
  @Test(
    "Whatever a server does to windows and limits, the client keeps them, all bodies arrive, and every request ends once",
    arguments: 0..<30)
  func windowsAndLimits(_ seed: UInt64) {
    let run = ModelRun(seed)
    for _ in 0..<150 { run.step() }
    run.finish()
    #expect(run.server.faults.isEmpty, "seed \(seed)")
    #expect(run.recorder.ends.sorted() == Array(0..<run.submitted), "seed \(seed)")
    for tag in 0..<run.submitted where run.recorder.answers[tag] != nil && !run.server.answeredEarly.contains(tag) {
      #expect(run.server.streams[tag]?.body == run.bodies[tag], "seed \(seed), request \(tag)")
    }
    #expect(Set(run.recorder.failures.values).isSubset(of: [.notProcessed(.refusedStream)]), "seed \(seed)")
    #expect(run.driver.end == .closedLocally)
  }
}

/// A client that submits at random, and a model of its server.
private final class ModelRun {
  let recorder = Recorder()
  let session: ClientSession
  let driver: MachineDriver
  let server: ModelServer
  var bodies: [[UInt8]] = []
  private let template = Conversation.makeTemplate()
  private var random: SeededGenerator
  private var toClient: [UInt8] = []
  private var toServer: [UInt8] = []
  private static let pattern = (0..<50_000).map { UInt8(truncatingIfNeeded: $0 &* $0 / 7) }
  private let now = MonotonicTime(nanoseconds: 1_000_000_000)

  var submitted: Int { bodies.count }

  init(_ seed: UInt64) {
    random = SeededGenerator(seed: seed)
    session = ClientSession(handler: recorder)
    driver = MachineDriver(session)
    server = ModelServer(seed: seed)
    recorder.onAnswer = { [unowned self] _ in submitSome() }
    recorder.onFailure = { [unowned self] _ in submitSome() }
    driver.open(at: now)
  }

  func step() {
    switch Int.random(in: 0..<5, using: &random) {
    case 0: submitSome()
    case 1: server.act()
    case 2: toServer += driver.collect(at: now)
    case 3: deliver(&toServer) { server.receive($0) }
    default: receive()
    }
  }

  /// Lets the server open all windows until everything is answered.
  func finish() {
    recorder.onAnswer = nil
    recorder.onFailure = nil
    session.drain()
    for _ in 0..<1000 where driver.end == nil {
      toServer += driver.collect(at: now)
      driver.settle(at: now)
      deliver(&toServer, all: true) { server.receive($0) }
      server.open()
      receive(all: true)
    }
  }

  private func receive(all: Bool = false) {
    toClient += server.takeOutput()
    deliver(&toClient, all: all) { driver.receive($0, at: now) }
  }

  private func deliver(_ wire: inout [UInt8], all: Bool = false, to receive: ([UInt8]) -> Void) {
    let count = all ? wire.count : min(wire.count, Int.random(in: 0...20_000, using: &random))
    let bytes = Array(wire[..<count])
    wire.removeFirst(count)
    receive(bytes)
  }

  private func submitSome() {
    for _ in 0..<Int.random(in: 0...3, using: &random) where session.availableStreams > 0 {
      let size = [0, 1, 300, 4096, 16_384, 40_000].randomElement(using: &random)!
      let body = Array(Self.pattern[submitted % 100..<submitted % 100 + size])
      var values = HeaderValues()
      for value in ["/3/device/\(submitted)", "bearer abc", "id"] { values.append(Array(value.utf8)) }
      values.appendAbsent()
      bodies.append(body)
      session.submit(template, body: body, tag: submitted - 1, &values)
    }
  }
}

/// A server that changes its windows and limits at random, and notes each frame that breaks them.
private final class ModelServer {
  struct Stream {
    var body: [UInt8] = []
    var credit = 0
    var isWhole = false
    var isOpen = true
  }

  /// By tag: the client's stream 2n+1 is its request n.
  var streams: [Int: Stream] = [:]
  var answeredEarly: Set<Int> = []
  var faults: [String] = []
  private var random: SeededGenerator
  private var output: [UInt8] = []
  private var input: [UInt8] = []
  private var hasPreface = false
  private var window = 65_535
  /// The settings that the client has acknowledged, and the ones that it hasn't.
  private var settings = (window: 65_535, limit: Int.max)
  private var unacknowledged: [(window: Int, limit: Int)] = []

  init(seed: UInt64) {
    random = SeededGenerator(seed: seed &+ 1000)
    set(window: Int.random(in: 0...70_000, using: &random), limit: Int.random(in: 1...10, using: &random))
  }

  func takeOutput() -> [UInt8] {
    defer { output = [] }
    return output
  }

  func act() {
    let open = streams.keys.filter { streams[$0]!.isOpen }.sorted()
    switch Int.random(in: 0..<8, using: &random) {
    case 0: set(window: Int.random(in: 0...70_000, using: &random), limit: Int.random(in: 0...10, using: &random))
    case 1, 2: widen(by: Int.random(in: 1...30_000, using: &random))
    case 3: if let tag = open.randomElement(using: &random) { widen(tag, by: Int.random(in: 1...30_000, using: &random)) }
    case 4: if let tag = open.randomElement(using: &random) { reset(tag, code: 7) }
    case 5: if let tag = open.randomElement(using: &random) { answer(tag) }
    default: for tag in open where streams[tag]!.isWhole { answer(tag) }
    }
  }

  func open() {
    if settings.window < 100_000 { set(window: 100_000, limit: 100) }
    if window < 100_000 { widen(by: 100_000) }
    for (tag, stream) in streams where stream.isOpen && stream.isWhole { answer(tag) }
  }

  private func set(window: Int, limit: Int) {
    unacknowledged.append((window, limit))
    output += frame(4, [0, 4] + bytes(window) + [0, 3] + bytes(limit))
  }

  private func widen(_ tag: Int? = nil, by increment: Int) {
    if let tag { streams[tag]!.credit += increment } else { window += increment }
    output += frame(8, stream: tag.map(Self.stream) ?? 0, bytes(increment))
  }

  private func reset(_ tag: Int, code: Int) {
    streams[tag]!.isOpen = false
    output += frame(3, stream: Self.stream(tag), bytes(code))
  }

  private func answer(_ tag: Int) {
    streams[tag]!.isOpen = false
    if !streams[tag]!.isWhole { answeredEarly.insert(tag) }
    output += frame(1, flags: 5, stream: Self.stream(tag), status200)
  }

  private func bytes(_ number: Int) -> [UInt8] { withUnsafeBytes(of: UInt32(number).bigEndian, Array.init) }
  private static func stream(_ tag: Int) -> UInt32 { UInt32(2 * tag + 1) }

  // MARK: The client's frames

  func receive(_ bytes: [UInt8]) {
    input += bytes
    if !hasPreface, input.count >= 24 {
      hasPreface = true
      input.removeFirst(24)
    }
    while hasPreface, input.count >= 9 {
      let size = Int(input[1]) << 8 | Int(input[2])
      guard input.count >= 9 + size else { return }
      let stream = input[5..<9].reduce(0) { $0 << 8 | Int($1) }
      received(input[3], flags: input[4], tag: stream / 2, input[9..<9 + size])
      input.removeFirst(9 + size)
    }
  }

  private func received(_ type: UInt8, flags: UInt8, tag: Int, _ payload: ArraySlice<UInt8>) {
    switch type {
    case 0:
      streams[tag]!.body += payload
      streams[tag]!.credit -= payload.count
      window -= payload.count
      if streams[tag]!.isWhole { faults.append("DATA after the end") }
      if window < 0 || streams[tag]!.credit + settings.window < 0 { faults.append("more DATA than a window allows") }
      streams[tag]!.isWhole = flags & 1 != 0
    case 1:
      if streams[tag] != nil { faults.append("HEADERS twice") }
      streams[tag] = Stream(isWhole: flags & 1 != 0)
      if streams.values.count(where: \.isOpen) > settings.limit { faults.append("more streams than the limit") }
    case 3: streams[tag]?.isOpen = false
    case 4 where flags & 1 != 0: settings = unacknowledged.removeFirst()
    default: break
    }
  }
}
