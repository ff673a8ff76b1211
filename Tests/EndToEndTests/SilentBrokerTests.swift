import Foundation
import TestSupport
import Testing

@Suite("While the broker accepts connections and answers nothing, a signal", .blocking)
struct SilentBrokerTests {
  /// Prints a line for each connection that it accepts.
  private static let listener = """
    import socket
    server = socket.create_server(("127.0.0.1", 0))
    print(server.getsockname()[1], flush=True)
    held = []
    while True:
        held.append(server.accept())
        print("accepted", flush=True)
    """

  /// A site whose broker never answers, also not to a TLS handshake if the scheme is `amqps`.
  private func start(_ scheme: String, settings: String = "") throws -> (Site, ChildProcess) {
    let site = try Site()
    let listener = try site.startForeign(["/usr/bin/python3", "-c", Self.listener])
    guard listener.waitForLines(1, seconds: 60), let port = Int(listener.outputSoFar.prefix(while: \.isNumber)) else {
      throw Broken("no listener: \(listener.outputSoFar)")
    }
    try site.write(
      """
      { broker: "\(scheme)://127.0.0.1:\(port)", prefix: "\(site.prefix)", trace: { keep: "1h" }, \(settings)
        apps: { "\(Site.app)": { apns: \(site.apns(port: 1)),
          webhooks: { hook: { url: "https://127.0.0.1:1/", secret: "\(WebhookTests.secret)", events: ["results"] } } } } }
      """, to: "pushfleet.json5")
    return (site, listener)
  }

  /// - Returns: the seconds from the signal to the end.
  private func interrupt(_ child: ChildProcess, _ listener: ChildProcess, connections: Int = 1) -> (Int32, Double) {
    #expect(listener.waitForLines(1 + connections, seconds: 90), "\(child.outputSoFar)")
    let begin = ContinuousClock.now
    child.signal(15)
    let status = child.wait()
    return (status, (ContinuousClock.now - begin) / .seconds(1))
  }

  @Test(
    "ends each kind of process at once", arguments: ["amqp", "amqps"],
    [(["worker"], 2), (["gateway"], 1), (["webhooks"], 1)] as [([String], Int)])
  func processes(_ scheme: String, _ kind: (words: [String], connections: Int)) throws {
    let door = try FreePorts.take(1)[0]
    let (site, listener) = try start(
      scheme, settings: #"registry: "sqlite:registry.db", gateway: { http: { listen: "127.0.0.1:\#(door)" } },"#)
    let child = try site.start(kind.words + ["--config", site.file("pushfleet.json5")])
    let (status, seconds) = interrupt(child, listener, connections: kind.connections)
    #expect(status == 0 && seconds < 3, "\(status) after \(seconds) s: \(child.outputSoFar)")
  }

  @Test(
    "ends each command at once, with status 130", arguments: ["amqp", "amqps"],
    [
      ["topology"], ["feedback"], ["feedback", "--follow"], ["status"], ["top", "--json"], ["trace", "m-1"], ["dead", "list"],
      ["dead", "replay"], ["dead", "drop", "--yes"], ["doctor"], ["send", "/dev/null"],
    ])
  func commands(_ scheme: String, _ words: [String]) throws {
    let (site, listener) = try start(scheme)
    let child = try site.start(words + ["--config", site.file("pushfleet.json5")])
    let (status, seconds) = interrupt(child, listener)
    #expect(status == 130 && seconds < 3, "\(status) after \(seconds) s: \(child.outputSoFar)")
  }
}
