/// Requests that come to several gateways, and are one.
extension SQLStore {
  func claimRequest(_ name: [UInt8], body: [UInt8], until: Int64, now: Int64) throws(RegistryError) -> GatewayRequest? {
    // Who comes again needs no write.
    if let known = try request(name, now: now), known.state != .again || known.body != body { return known }
    return try transaction(.requests) { () throws(RegistryError) in
      let values: [SQLValue] = [.blob(name), .blob(body), .int(until), .int(now)]
      guard try session.run(SQL.claimRequest, values) == 0 else { return nil }
      return try request(name, now: now)
    }
  }

  private func request(_ name: [UInt8], now: Int64) throws(RegistryError) -> GatewayRequest? {
    var request: GatewayRequest?
    try session.run(SQL.requestByName, [.blob(name), .int(now)]) { row in
      let state: GatewayRequest.State =
        switch row.int(1) {
        case Self.underWay: .underWay
        case Self.again: .again
        default: row.optionalBytes(2).map { .result($0) } ?? .accepted
        }
      request = GatewayRequest(body: row.bytes(0), state: state)
    }
    return request
  }

  private static var underWay: Int64 { 0 }
  private static var again: Int64 { 1 }
  private static var settled: Int64 { 2 }

  func settleRequest(
    _ name: [UInt8], _ state: GatewayRequest.State?, until: Int64, now: Int64
  ) throws(RegistryError) -> GatewayRequest.State? {
    try transaction(.requests) { () throws(RegistryError) in
      let isNoted =
        switch state {
        case nil, .underWay?: try session.run(SQL.forgetRequest, [.blob(name)]) > 0
        case .again?: try session.run(SQL.settleRequest, [.blob(name), .int(Self.again), .null, .int(until)]) > 0
        case .accepted?: try session.run(SQL.settleRequest, [.blob(name), .int(Self.settled), .null, .int(until)]) > 0
        case .result(let body)?:
          try session.run(SQL.settleRequest, [.blob(name), .int(Self.settled), .blob(body), .int(until)]) > 0
        }
      return isNoted ? state : try request(name, now: now)?.state ?? state
    }
  }

  func purgeRequests(before: Int64, limit: Int) throws(RegistryError) -> Int {
    try transaction(.notes) { () throws(RegistryError) in
      try session.run(SQL.purgeRequests, [.int(before), .int(Int64(limit))])
    }
  }
}

extension SQL {
  static let requestByName = Statement("SELECT body, state, answer FROM gateway_requests WHERE name = ?1 AND until > ?2")
  static let claimRequest = Statement(
    """
    INSERT INTO gateway_requests (name, body, state, until) VALUES (?1, ?2, 0, ?3) ON CONFLICT (name) DO UPDATE SET
      body = excluded.body, state = 0, answer = NULL, until = excluded.until
    WHERE gateway_requests.until <= ?4 OR gateway_requests.state = 1 AND gateway_requests.body = excluded.body
    """)
  static let settleRequest = Statement(
    "UPDATE gateway_requests SET state = ?2, answer = ?3, until = ?4 WHERE name = ?1 AND state < 2")
  static let forgetRequest = Statement("DELETE FROM gateway_requests WHERE name = ?1 AND state = 0")
  static let purgeRequests = Statement(
    """
    DELETE FROM gateway_requests WHERE name IN (
      SELECT name FROM gateway_requests WHERE until <= ?1 ORDER BY until LIMIT ?2)
    """)
}
