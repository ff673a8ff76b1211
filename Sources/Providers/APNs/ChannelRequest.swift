import HTTP2
import PushCore
import Wire

/// One request to create, read, delete or list broadcast channels, on its own connection (Apple, "Sending channel management
/// requests to APNs"). Sent only once: a retry after a lost answer could create a second channel.
public final class ChannelRequest {
  public enum Operation: Sendable, Equatable {
    /// `storesLatest`: keeps the latest broadcast for devices that are offline.
    case create(storesLatest: Bool)
    case read(channel: [UInt8])
    case delete(channel: [UInt8])
    case list
  }

  public enum Outcome: Sendable, Equatable {
    /// `channel` is the id of a created channel.
    case answered(Int, channel: [UInt8]?, body: [UInt8])
    /// The request was not processed.
    case notSent(String)
    /// The request may have been processed.
    case unknown(String)
  }

  /// Seconds for an answer, and for a connection.
  private static let timeout = 20.0

  private let request: SingleRequest
  private let target: DialTarget

  /// - Parameters:
  ///   - credentials: with the management host as their target.
  ///   - bundleID: without a push type's suffix.
  ///   - wallClock: Unix milliseconds.
  /// - Throws: if the key can't sign.
  public init(
    _ operation: Operation, bundleID: String, credentials: APNsCredentials, wallClock: Int64,
    completion: @escaping (Outcome) -> Void
  ) throws {
    target = credentials.target
    let (method, collection, channel, body) = Self.parts(operation)
    let template = HeaderTemplate(
      constant: [
        (":method", method), (":scheme", "https"), (":authority", target.authority),
        (":path", "/1/apps/\(bundleID)/\(collection)"),
      ], variable: ["authorization", "apns-channel-id"], unindexed: ["authorization", "apns-channel-id"])
    var values = HeaderValues()
    if case .token(let credential) = credentials.authentication {
      values.append(try credential.token(ProviderToken.number(at: wallClock)).authorization)
    } else {
      values.appendAbsent()
    }
    if let channel { values.append(channel) } else { values.appendAbsent() }
    request = SingleRequest(
      template, values, body: body, timeout: Self.timeout,
      configure: {
        $0.keptResponseHeaders = ["apns-channel-id"]
        $0.maxResponseBody = Self.longestBody
      }, completion: { completion(Outcome($0)) })
  }

  /// Bytes. Enough for a list of ten thousand channels.
  private static let longestBody = 4 << 20

  private static func parts(_ operation: Operation) -> (method: String, collection: String, channel: [UInt8]?, body: [UInt8]) {
    switch operation {
    case .create(let storesLatest):
      let body: JSONObject = ["message-storage-policy": storesLatest ? 1 : 0, "push-type": "LiveActivity"]
      return ("POST", "channels", nil, body.line)
    case .read(let channel): return ("GET", "channels", channel, [])
    case .delete(let channel): return ("DELETE", "channels", channel, [])
    case .list: return ("GET", "all-channels", nil, [])
    }
  }

  public func start(_ time: Turn, _ dialer: any Dialer) { request.start(time, dialer, target) }
}

extension ChannelRequest.Outcome {
  fileprivate init(_ end: SingleRequest.End) {
    self =
      switch end {
      case .answered(let response): .answered(response.status, channel: response.header(0), body: response.body)
      case .timedOut(isSubmitted: true): .unknown("no answer in time")
      case .timedOut(isSubmitted: false): .notSent("no connection in time")
      case .failed(.notProcessed): .notSent("the server did not take the request")
      case .failed(.unknown): .unknown("the connection was lost before the answer")
      case .ended(let reason): .notSent("\(reason)")
      }
  }
}
