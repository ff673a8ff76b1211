import Foundation
import Glibc
import TestSupport
import Testing

/// Too many senders, and those that send too little or too much, at a gateway or broker under strain.
@Suite("The gateway's HTTP door under strain", .blocking, .serialized)
struct DoorPatienceTests {
  private static func body(_ number: Int) -> String { #"{"to":"\#(token(number))","data":{"n":"\#(number)"}}"# }

  /// A send request in its wire form.
  private static func request(_ number: Int, _ key: String) -> String {
    let text = body(number)
    return "POST /fcm/send HTTP/1.1\r\nHost: h\r\nAuthorization: key=\(key)\r\nContent-Type: application/json\r\n"
      + "Content-Length: \(text.utf8.count)\r\n\r\n\(text)"
  }

  private static func say(_ text: String, _ descriptor: Int32) {
    let bytes = Array(text.utf8)
    _ = send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
  }

  /// Reads until the other side closes, or until the connection's own time limit.
  private static func hear(_ descriptor: Int32) -> String {
    var heard: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4_096)
    while case let count = recv(descriptor, &chunk, chunk.count, 0), count > 0 { heard += chunk[..<count] }
    return String(decoding: heard, as: UTF8.self)
  }

  /// The other side has ended the connection.
  private static func isEnded(_ descriptor: Int32) -> Bool {
    var byte: UInt8 = 0
    let count = recv(descriptor, &byte, 1, Int32(MSG_DONTWAIT | MSG_PEEK))
    return count == 0 || count < 0 && errno != EAGAIN
  }

  static func mostDescriptors() throws -> Int {
    var limit = rlimit()
    try #require(getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
    limit.rlim_cur = limit.rlim_max
    _ = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    return Int(clamping: limit.rlim_cur)
  }

  @Test("ten thousand connections with nothing or half a request keep no client out; beyond the limit the oldest are closed")
  func idle() throws {
    let site = try Site()
    let port = try FreePorts.take(1)[0]
    try site.startFleet(settings: Door.settings(port, wait: 0))
    let door = try Door(site, port: port)
    let key = try door.key().key
    var silent: [Int32] = []
    defer { for descriptor in silent { close(descriptor) } }
    func open(_ count: Int, _ probe: HTTPProbe) throws {
      for number in 0..<count {
        let descriptor = try #require(probe.connection(seconds: 20), "connection \(silent.count)")
        silent.append(descriptor)
        if number % 3 == 0 { Self.say("POST /fcm/send HT", descriptor) }
        if number % 3 == 1 { Self.say(String(Self.request(number, key).dropLast(9)), descriptor) }
      }
    }
    // The limit of two processes, if that is lower.
    let many = max(500, min(10_000, try Self.mostDescriptors() - 2_000))
    try open(many, door.probe)
    #expect(try door.ask("POST", "/fcm/send", key, Self.body(1)).status == 200)
    // A connection that continues is answered as usual.
    let last = try #require(door.probe.connection(seconds: 20))
    silent.append(last)
    let request = Self.request(many, key)
    Self.say(String(request.dropLast(9)), last)
    Self.say(String(request.suffix(9)), last)
    var byte: UInt8 = 0
    #expect(recv(last, &byte, 1, 0) == 1 && byte == UInt8(ascii: "H"))
    for descriptor in silent { close(descriptor) }
    silent = []

    // With few descriptors the limit is low: 700 less 512.
    let narrow = try FreePorts.take(1)[0]
    let limited = try ChildProcess(
      [
        "/bin/sh", "-c", "ulimit -n 700; exec \"$0\" \"$@\"", Program.path, "gateway", "--config", site.file("pushfleet.json5"),
      ],
      environment: Site.environment.merging(["PUSHFLEET_GATEWAY_HTTP_LISTEN": "127.0.0.1:\(narrow)"]) { $1 }, output: nil)
    defer { limited.end() }
    let probe = HTTPProbe(port: narrow)
    #expect(eventually { probe.ask("/readyz")?.status == 200 })
    try open(400, probe)
    #expect(
      probe.ask(
        "/fcm/send", method: "POST", headers: ["Authorization": "key=\(key)", "Content-Type": "application/json"],
        body: Self.body(2), seconds: 20)?.status == 200)
    #expect(eventually { silent.count { !Self.isEnded($0) } <= 188 })
    #expect(!Self.isEnded(silent[399]))
    #expect(try site.depths(["send.normal"]) == [3])
  }

  @Test("a good request before garbage on its connection is answered, and the garbage is not")
  func garbage() throws {
    let site = try Site()
    let port = try FreePorts.take(1)[0]
    try site.startFleet(settings: Door.settings(port, wait: 0))
    let door = try Door(site, port: port)
    let key = try door.key().key
    for (number, after) in [
      "\u{1}\u{2}\u{3}\r\n\r\n", "GET\r\n\r\n", "POST /fcm/send HTTP/9.9\r\n\r\n", "{\"to\":\"x\"}\r\n\r\n",
      "POST /fcm/send HTTP/1.1\r\nHost: h\r\nContent-Length: -5\r\n\r\n",
      "POST /fcm/send HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ].enumerated() {
      let descriptor = try #require(door.probe.connection(seconds: 20))
      defer { close(descriptor) }
      Self.say(Self.request(number, key) + Self.request(100 + number, key) + after, descriptor)
      shutdown(descriptor, Int32(SHUT_WR))
      let answers = Self.hear(descriptor).components(separatedBy: "HTTP/1.").dropFirst()
      let statuses = answers.compactMap { Int($0.split(separator: " ").dropFirst().first ?? "") }
      #expect(
        statuses.prefix(2) == [200, 200] && statuses.dropFirst(2).allSatisfy { $0 >= 400 },
        "\(after.debugDescription): \(statuses)")
    }
    #expect(try site.depths(["send.normal"]) == [12])
    #expect(door.probe.ask("/livez")?.status == 200 && !door.gateway.outputSoFar.contains("level\":\"error"))
  }

  @Test(
    "beyond its rate a key gets 429 with a time to wait, in each API's form, and nothing is sent")
  func rate() throws {
    let site = try Site()
    let port = try FreePorts.take(1)[0]
    try site.startFleet(settings: Door.settings(port, wait: 0))
    let door = try Door(site, port: port)
    let (slow, free) = (try door.key("send,register", ["--rate", "3"]).key, try door.key().key)
    var taken = 0
    var refused: [HTTPProbe.Answer] = []
    while refused.count < 3, taken < 500 {
      let answer = try door.ask("POST", "/fcm/send", slow, Self.body(taken))
      if answer.status == 200 { taken += 1 } else { refused.append(answer) }
    }
    #expect(taken >= 3 && refused.allSatisfy { $0.status == 429 && Int($0.headers["retry-after"] ?? "") == 1 })
    #expect(refused.allSatisfy { $0.headers["content-type"]?.hasPrefix("text/plain") == true })
    let others = try [
      ("POST", "/v1/projects/p/messages:send"), ("POST", "/iid/v1:batchAdd"), ("PUT", "/v1/apps/\(Site.app)/installations/i"),
    ]
    .map { method, path in
      var answer = try door.ask(method, path, slow, "{}")
      for _ in 0..<500 where answer.status != 429 { answer = try door.ask(method, path, slow, "{}") }
      return answer
    }
    #expect(others.allSatisfy { $0.status == 429 && $0.headers["retry-after"] != nil })
    #expect(others[0].body.contains("QUOTA_EXCEEDED") && others[1].body == #"{"error":"RESOURCE_EXHAUSTED"}"#)
    #expect(others[2].body.contains("TooManyRequests"))
    // Others are accepted meanwhile, and it is too, later.
    #expect(try door.ask("POST", "/fcm/send", free, Self.body(900)).status == 200)
    #expect(try eventually { try door.ask("POST", "/fcm/send", slow, Self.body(901)).status == 200 })
    #expect(try site.depths(["send.normal"]) == [taken + 2])
  }

  @Test("requests in flight at SIGTERM are answered before the gateway ends; new clients find the door closed")
  func stopped() throws {
    let site = try Site()
    let port = try FreePorts.take(1)[0]
    try site.startFleet(settings: Door.settings(port, wait: 300))
    let door = try Door(site, port: port)
    let key = try door.key().key
    let descriptors = try (0..<20).map { _ in try #require(door.probe.connection(seconds: 60)) }
    defer { for descriptor in descriptors { close(descriptor) } }
    for (number, descriptor) in descriptors.enumerated() { Self.say(Self.request(number, key), descriptor) }
    #expect(try eventually { try site.depths(["send.normal"]) == [20] })
    door.gateway.signal(15)
    #expect(eventually { door.probe.connection().map { close($0) } == nil })
    #expect(door.gateway.isRunning)
    // Their results come from a worker that begins now.
    let worker = try site.startWorker()
    for descriptor in descriptors {
      let answer = Self.hear(descriptor)
      #expect(answer.hasPrefix("HTTP/1.1 200") && answer.contains(#""success":1"#) && answer.contains("Connection: close"))
    }
    #expect(door.gateway.wait() == 0)
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try site.deliveries().count == 20)
  }
}
