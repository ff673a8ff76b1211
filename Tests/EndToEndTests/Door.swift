import Foundation
import TestSupport
import Testing

/// A gateway of a site with an HTTP client. docs/openapi.yaml must have each of its answers.
struct Door {
  let site: Site
  let probe: HTTPProbe
  let port: UInt16
  let gateway: ChildProcess

  init(_ site: Site, port: UInt16, environment: [String: String] = [:]) throws {
    self.site = site
    probe = HTTPProbe(port: port)
    self.port = port
    gateway = try site.start(["gateway", "--config", site.file("pushfleet.json5")], environment: environment)
    guard gateway.waitForOutput(#""publishing""#, seconds: 90) else { throw Broken("no gateway: \(gateway.outputSoFar)") }
    guard eventually({ [probe] in probe.ask("/readyz")?.status == 200 }) else { throw Broken("not ready") }
  }

  static func settings(_ port: UInt16, wait: Int = 30) -> String {
    #"receipts: true, gateway: { http: { listen: "127.0.0.1:\#(port)", wait: \#(wait) } },"#
  }

  func key(_ rights: String = "send,register,ack", _ options: [String] = []) throws -> (id: String, key: String) {
    let ended = try site.run(
      ["keys", "create", "--config", site.file("pushfleet.json5"), "--rights", rights, "--json"] + options)
    let object = try #require(Site.objects(ended.output).first)
    return (object["id"] as? String ?? "", object["key"] as? String ?? "")
  }

  func ask(_ method: String, _ path: String, _ key: String?, _ body: String? = nil, _ headers: [String: String] = [:])
    throws -> HTTPProbe.Answer
  {
    var headers = headers
    if let key { headers["Authorization"] = "key=\(key)" }
    if body != nil, headers["Content-Type"] == nil { headers["Content-Type"] = "application/json" }
    let answer = try #require(
      probe.ask(path, method: method, headers: headers, body: body, seconds: 120), "\(method) \(path)")
    #expect(
      try DoorDescription.shared.get().has(answer.status, method, path),
      "docs/openapi.yaml has no \(answer.status) for \(method) \(path)")
    return answer
  }

  func json(
    _ method: String, _ path: String, _ key: String?, _ body: String? = nil, _ headers: [String: String] = [:],
    status: Int = 200
  ) throws -> [String: Any] {
    let answer = try ask(method, path, key, body, headers)
    #expect(answer.status == status, "\(method) \(path): \(answer.status) \(answer.body)")
    return try #require(try JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? [String: Any])
  }
}
