import AMQP
import Foundation
import PushCore
import Settings
import TestSupport
import Testing

@testable import pushfleet

@Suite("pushfleet feedback")
struct FeedbackReaderTests {
  @Test("a command gets at most 500 events at a time, in order, however many have arrived")
  func portions() throws {
    let site = try RegistrySite()
    let counts = site.folder.appendingPathComponent("counts").path
    let reader = try FeedbackReader(
      try Configuration.load(path: site.configuration, environment: [:]), FeedbackSelection(limit: 1_200), follows: true,
      command: ShellCommand(text: "tee -a \(site.folder.path)/lines | wc -l >> \(counts)"))
    let consumer = Consumer(
      settings: ConnectionSettings(broker: try BrokerURI(parsing: "amqp://127.0.0.1/"), name: "test"),
      queues: [.init(queue: "q", prefetch: 500)], handler: reader)
    reader.ready(consumer)
    for number in 0..<1_200 {
      var delivery = Delivery()
      delivery.body = Array("{\"n\":\(number)}".utf8)
      reader.delivered(delivery)
    }
    var lines: [Substring] = []
    _ = eventually {
      reader.loop.turn(waitingAtMost: 0.1)
      lines = (try? String(contentsOfFile: counts, encoding: .utf8))?.split(separator: "\n") ?? []
      return lines.compactMap { Int($0) }.reduce(0, +) >= 1_200
    }
    #expect(lines == ["500", "500", "200"])
    let all = try String(contentsOfFile: "\(site.folder.path)/lines", encoding: .utf8).split(separator: "\n")
    #expect(all == (0..<1_200).map { "{\"n\":\($0)}" }[...].map { $0[...] })
  }
}
