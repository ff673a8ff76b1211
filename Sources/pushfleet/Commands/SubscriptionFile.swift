import Foundation
import Reactor
import Settings
import Simulator

/// The subscriptions that `pushfleet simulate webpush` makes, one JSON object a line. The file is private, because who knows a
/// subscription can send to it.
struct SubscriptionFile {
  private let count: Int
  private let path: String
  private let app: String?

  /// Nil if no subscriptions are wanted.
  init?(_ options: Options) throws(CommandFailure) {
    guard let count = try options.integer("subscriptions", in: 1...1_000_000) else {
      guard options["app"] == nil else { throw CommandFailure(.usage, "--app needs --subscriptions N FILE") }
      return nil
    }
    guard let path = options.operands.dropFirst().first else {
      throw CommandFailure(.usage, "--subscriptions needs a number and a file: --subscriptions 100 subscriptions.ndjson")
    }
    self.count = count
    self.path = path
    app = options["app"]
  }

  /// - Parameter endpoint: where the simulator listens.
  func write(_ endpoint: Endpoint) throws(CommandFailure) {
    let origin = "https://\(Endpoint(host: Self.host(endpoint.host), port: endpoint.port))"
    do {
      try Data().write(to: URL(filePath: path))
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
      let file = try FileHandle(forWritingTo: URL(filePath: path))
      defer { try? file.close() }
      for first in stride(from: 1, through: count, by: Self.linesPerWrite) {
        try file.write(contentsOf: Data(lines(first...min(first + Self.linesPerWrite - 1, count), origin)))
      }
    } catch {
      throw CommandFailure(.badInput, "--subscriptions: \(SafeText.path(path)) cannot be written\(SafeText.reason(path))")
    }
  }

  private func lines(_ numbers: ClosedRange<Int>, _ origin: String) throws -> [UInt8] {
    try numbers.flatMap { number in
      try SimulatedSubscription(number: number, origin: origin).registration(number: number, app: app) + [UInt8(ascii: "\n")]
    }
  }

  /// The host of the endpoints: what the certificate names.
  static func host(_ listening: String) -> String {
    ["127.0.0.1", "0.0.0.0", "::1", "::"].contains(listening) ? "localhost" : listening
  }

  private static let linesPerWrite = 1000
}
