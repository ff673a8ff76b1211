@testable import Gateway

/// Writes notifications as senders of APNs' binary interface do.
enum OldSender {
  static let token = (0..<32).map { UInt8($0) }
  static let payload = Array(#"{"aps":{"alert":"Hello"}}"#.utf8)

  static func simple(token: [UInt8] = token, payload: [UInt8] = payload) -> [UInt8] {
    var bytes: [UInt8] = [0]
    bytes += big(token.count, 2) + token
    return bytes + big(payload.count, 2) + payload
  }

  static func enhanced(_ identifier: UInt32, expiry: UInt32 = 0, token: [UInt8] = token, payload: [UInt8] = payload) -> [UInt8]
  {
    var bytes: [UInt8] = [1]
    bytes += big(Int(identifier), 4) + big(Int(expiry), 4)
    bytes += big(token.count, 2) + token
    return bytes + big(payload.count, 2) + payload
  }

  static func framed(_ items: [(id: UInt8, data: [UInt8])]) -> [UInt8] {
    var body: [UInt8] = []
    for item in items {
      body.append(item.id)
      body += big(item.data.count, 2) + item.data
    }
    return [2] + big(body.count, 4) + body
  }

  static func framed(
    _ identifier: UInt32, expiry: UInt32? = nil, priority: UInt8? = nil, token: [UInt8] = token, payload: [UInt8] = payload
  ) -> [UInt8] {
    var items: [(id: UInt8, data: [UInt8])] = [(1, token), (2, payload), (3, big(Int(identifier), 4))]
    if let expiry { items.append((4, big(Int(expiry), 4))) }
    if let priority { items.append((5, [priority])) }
    return framed(items)
  }

  static func big(_ value: Int, _ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * (count - 1 - $0))) }
  }

  static func response(_ status: BinaryStatus, _ identifier: UInt32) -> [UInt8] {
    [8, status.rawValue] + big(Int(identifier), 4)
  }
}
