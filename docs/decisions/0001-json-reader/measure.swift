import Foundation
import PushCore

struct Notification: Codable {
  var title: String?, body: String?, badge: String?, sound: String?
}

struct Request: Codable {
  var to: String?, priority: String?, time_to_live: Int?, collapse_key: String?
  var notification: Notification?, data: [String: String]?
}

/// The best of seven rounds.
func measure(_ name: String, times: Int, _ work: () -> Int) {
  var best = Double.infinity
  var sum = 0
  for _ in 0..<7 {
    let start = DispatchTime.now().uptimeNanoseconds
    for _ in 0..<times { sum &+= work() }
    best = min(best, Double(DispatchTime.now().uptimeNanoseconds - start) / Double(times))
  }
  precondition(sum != 0)
  print("\(name): \(Int(best)) ns")
}

let data = try Data(contentsOf: URL(filePath: CommandLine.arguments[1]))
let body = Array(data)
let decoder = JSONDecoder()
measure("ours, tape only", times: 100_000) { (try? JSONDocument(body))?.count(0) ?? 0 }
measure("ours, validated SendRequest", times: 100_000) { (try? SendRequest.parse(body).get().timeToLive) ?? 0 }
measure("Foundation, JSONDecoder", times: 10_000) { (try? decoder.decode(Request.self, from: data).time_to_live) ?? 0 }
measure("Foundation, JSONSerialization", times: 10_000) {
  (try? JSONSerialization.jsonObject(with: data) as? [String: Any])?.count ?? 0
}
