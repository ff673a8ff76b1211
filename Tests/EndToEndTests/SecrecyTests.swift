import Foundation
import TestSupport
import Testing

@Suite("Secrets", .blocking)
struct SecrecyTests {
  @Test("of a command's output are found in every test, except for intended ones")
  func found() throws {
    let key = try String(contentsOfFile: TestCertificates.make().rsaKey, encoding: .utf8).split(separator: "\n")[5]
    let credentials = ["bearer ya29.x", "eyJhbGciOiJFUzI1NiJ9", "key \(key).", "amqp://guest:guest@127.0.0.1", "pf1d~abc"]
    for said in credentials + ["sent to \(token(7))", "pf1k~abc"] {
      for command in ["worker", "gateway", "send", "status", "trace"] {
        #expect(SpokenSecrets.found(in: said, of: [command]).count == 1, "\(command): \(said)")
      }
    }
    for said in credentials { #expect(SpokenSecrets.found(in: said, of: ["feedback"]).count == 1, "\(said)") }
    #expect(SpokenSecrets.found(in: "pf1k~abc", of: ["keys", "list"]).count == 1)
    for (said, words) in [
      ("gone: \(token(7))", ["feedback"]), ("pf1k~abc", ["keys", "create"]),
      (#"{"message":"request taken","message_id":"7f1c0c1e"}"#, ["gateway"]),
    ] { #expect(SpokenSecrets.found(in: said, of: words) == [], "\(words)") }
    let shell = ["/bin/bash", "-c", #""$1" feedback --config "$2""#, "bash", Program.path, "/tmp/pushfleet.json5"]
    for command in [[Program.path, "devices", "list"], shell] {
      #expect(SpokenSecrets.found(in: token(7), of: command) == [], "\(command)")
    }
    for command in [["help", "dead"], ["send", "--app", "devices"], ["worker", "--config", "/feedback"]] {
      #expect(SpokenSecrets.found(in: token(7), of: [Program.path] + command).count == 1, "\(command)")
    }
    withKnownIssue { SpokenSecrets.look(in: credentials[0], of: ["worker"]) }
    withKnownIssue {
      try ChildProcess(["/bin/sh", "-c", "echo \(credentials[1])", Program.path, "worker"], output: nil).wait()
    }
  }

  @Test("a key given inline signs pushes; a broken one is named by its setting, and no command repeats any part of it")
  func inlineKey() throws {
    let site = try Site()
    try site.startSimulator()
    let variable = "PUSHFLEET_APPS_COM_EXAMPLE_APP_APNS_KEY"
    let key = try String(contentsOfFile: site.certificates.p8, encoding: .utf8)
    let body = Array(key.split(separator: "\n").filter { !$0.hasPrefix("-") }.joined())
    let runs = (0...(body.count - 8)).map { String(body[$0..<($0 + 8)]) }
    try site.declareTopology()
    try site.send(tokens: [token(1)])
    try site.drain(environment: [variable: key])
    #expect(try site.deliveries() == [token(1): 1])

    let request = try site.write(#"{"to":"\#(token(1))"}"#, to: "one.json")
    let config = site.file("pushfleet.json5")
    let broken = [String(key.dropLast(80)), key.replacing("\n", with: ""), String(body), key.replacing("-----BEGIN", with: "")]
    for value in broken {
      let worker = try site.run(["worker", "--config", config, "--until-empty"], environment: [variable: value])
      #expect(worker.status == 78 && worker.output.contains("apps.com.example.app.apns.key"), "\(worker.output)")
      for words in [["topology"], ["explain", request], ["feedback"], ["devices", "export"]] {
        let ended = try site.run(words + ["--config", config], environment: [variable: value])
        #expect(!runs.contains { ended.output.contains($0) }, "\(words): \(ended.output)")
      }
      #expect(!runs.contains { worker.output.contains($0) }, "\(worker.output)")
    }
  }

  @Test(
    "at level debug no log has a key, a provider token, a password or a device token, and each line is one object"
  )
  func logs() throws {
    let site = try Site()
    let user = "u\(site.prefix)"
    try site.broker.addUser(user, password: "s3cret-Passw0rd")
    site.brokerURI = "amqp://\(user):s3cret-Passw0rd@127.0.0.1:\(site.broker.port)"
    let device = { (number: Int) in token(0xabc_def0 + number) }
    let settings = #"log: "debug", results: "all", retry: { steps: ["100ms", "300ms"], attempts: 3 },"#
    let script: [String: Any] = [
      device(1): ["status": 410, "reason": "Unregistered"], device(2): ["status": 400, "reason": "BadDeviceToken"],
      device(3): ["status": 429, "reason": "TooManyRequests"], device(4): ["status": 503, "reason": "ServiceUnavailable"],
      device(5): [["close": true]], device(6): [["reset": true]], device(7): [["goaway": ["reason": "Shutdown\r\n\u{1B}[31m"]]],
      device(8): [["status": 403, "reason": "ExpiredProviderToken"]],
      device(9): ["status": 400, "reason": "Odd\r\n\u{1B}[31m\"}"],
      device(10): ["status": 500, "body": "<html>\(device(10))</html>"],
    ]
    try site.startSimulator(script: script, settings: settings)
    let hostile = "x\r\n{\"level\":\"error\"}\u{1B}[31m\u{2028}\u{202E}\"\\"
    var outputs = [try site.run(["topology", "--config", site.file("pushfleet.json5")]).output]
    var messages: [(body: Any, properties: [String: Any])] = (0...10).map {
      (
        #"{"to":"\#(device($0))","data":{"secret":"payload-secret"}}"#,
        ["message_id": "{\"level\":\"error\"}\\ \($0)", "correlation_id": hostile, "headers": [hostile: hostile]]
      )
    }
    messages += [
      (#"{"to":"\#(device(0))"}"#, ["message_id": hostile]),
      ("{\"to\":\"\(hostile)\"}", ["message_id": hostile]), (#"{"to":"\#(device(11))"}"#, ["app_id": hostile]),
      (#"{"to":"\#(device(12))"}"#, ["reply_to": hostile]), (#"{"\#(device(13))":1}"#, ["content_type": hostile]),
      (#"{"to":"\#(device(13))?"}"#, [:]), (#"{"to":"\#(device(14))","\#(device(14))":1}"#, [:]),
    ]
    try site.publish(messages)
    outputs.append(try site.run(["worker", "--config", site.file("pushfleet.json5"), "--until-empty"]).output)
    // The log isn't empty: it has each step of a request, without secrets.
    for word in ["request taken", "resolved", "translated", "sent", "answer", "put off", "dead letter", "request acknowledged"]
    {
      #expect(outputs[1].contains(#""level":"debug""#) && outputs[1].contains("\"message\":\"\(word)\""), "\(word)")
    }
    // Also for an unreachable provider and broker.
    site.stopSimulator()
    try site.publish([(#"{"to":"\#(device(20))"}"#, [:])])
    let worker = try site.startWorker()
    #expect(worker.waitForOutput("provider unreachable", seconds: 90))
    try site.broker.changePassword(of: user, to: "another-Passw0rd")
    worker.signal(1)
    worker.signal(15)
    worker.wait()
    outputs.append(worker.outputSoFar)
    outputs.append(try site.run(["worker", "--config", site.file("pushfleet.json5")]).output)

    let key = try String(contentsOfFile: site.certificates.p8, encoding: .utf8).split(separator: "\n").filter {
      !$0.hasPrefix("-")
    }
    let secrets = ["Passw0rd", "payload-secret", "eyJ", "bearer ", "abcdef"] + key.map(String.init)
    for output in outputs {
      for secret in secrets {
        #expect(!output.localizedCaseInsensitiveContains(secret), "\(secret.prefix(6))… stands in: \(output)")
      }
      #expect(!output.contains("\u{1B}") && !output.contains("\r") && !output.contains("\u{2028}"))
    }
    let lines = (outputs[1] + worker.outputSoFar).split(separator: "\n").filter { !$0.hasPrefix("pushfleet: ") }
    #expect(lines.count > 5)
    for line in lines {
      let object = (try? JSONSerialization.jsonObject(with: Data(line.utf8))) as? [String: Any]
      #expect(object?["time"] is String && object?["level"] is String && object?["message"] is String, "\(line)")
    }
  }

  @Test("no FCM credential, registry password, token or payload is in the log or in the metrics")
  func everywhereElse() throws {
    let site = try Site()
    let port = try FreePorts.take(1)[0]
    try site.startSimulator()
    let fcm = try site.startFCM()
    try site.configureFleet(
      "postgresql://pushfleet:s3cret-Registry@127.0.0.1:1/push",
      settings: "log: \"debug\", metrics: \"127.0.0.1:\(port)\",", apps: fcm)
    try site.declareTopology()
    let device = token(0xabc_def1)
    let other = "cRegistrationAb1:APA91b" + String(repeating: "Zz9_-", count: 25)
    let worker = try site.startWorker()
    #expect(worker.waitForOutput("the registry can't be used", seconds: 90))
    try site.publish([
      (["to": "apns:\(device)", "data": ["k": "payload-secret"]], [:]),
      (["to": "fcm:\(other)", "data": ["k": "payload-secret"]], [:]),
      (["to": "fcm:\(other)", "data": ["k": "payload-secret " + String(repeating: "x", count: 5000)]], [:]),
      (["to": "apns:\(device)", other: 1], [:]), (["to": "/topics/\(other)?payload-secret"], [:]),
    ])
    let letters = try site.take("dead", count: 3)
    #expect(letters.count == 3)
    #expect(worker.waitForOutput(#""outcomes":"1 delivered""#, times: 2, seconds: 90), "\(worker.outputSoFar)")
    var figures = ""
    #expect(
      eventually {
        figures = HTTPProbe(port: port).ask("/metrics")?.body ?? ""
        return figures.matches(of: /\npushfleet_pushes_delivered_total\{[^}]*\} ([0-9]+)/).reduce(0) { $0 + (Int($1.1) ?? 0) }
          == 2
      })
    for page in ["/", "/status.json", "/history.json"] {
      let body = HTTPProbe(port: port).ask(page)?.body ?? ""
      #expect(!body.isEmpty, "\(page)")
      figures += body
    }
    // The workers' answers to a status request.
    figures += try site.run(["status", "--json", "--pools", "--config", site.file("pushfleet.json5")]).output
    worker.signal(15)
    worker.wait()

    let keys = try [site.certificates.p8, site.certificates.rsaKey].flatMap {
      try String(contentsOfFile: $0, encoding: .utf8).split(separator: "\n").filter { !$0.hasPrefix("-") }.map(String.init)
    }
    let credentials = ["s3cret-Registry", "ya29", "eyJ"] + keys
    for secret in credentials + ["payload-secret", "abcdef1", "APA91b"] {
      for output in [worker.outputSoFar, figures] { #expect(!output.contains(secret), "\(secret.prefix(6))… in: \(output)") }
    }
    for secret in credentials { #expect(!letters.contains { "\($0.headers)".contains(secret) }) }
  }
}
