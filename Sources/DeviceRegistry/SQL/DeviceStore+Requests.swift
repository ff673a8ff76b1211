/// Notes of requests with different names, to be stored together.
struct RequestNotes {
  /// See ``Note``.
  typealias Claim = Placed<(name: [UInt8], message: [UInt8], body: [UInt8], until: Int64)>
  typealias Settlement = Placed<(name: [UInt8], state: GatewayRequest.State?, until: Int64, isLate: Bool)>

  var claims: [Claim] = []
  var settlements: [Settlement] = []
  var names: Set<[UInt8]> = []
}

/// Requests that may come to several gateways but count once. A transaction changes their rows in the order of their names, and
/// claims use a separate transaction. Otherwise gateways with the same requests could deadlock.
extension DeviceStore {
  func noteRequests(_ requests: inout RequestNotes, _ answers: inout [NoteAnswer]) throws(RegistryError) -> Bool {
    if !requests.settlements.isEmpty { try settle(requests.settlements, &answers) }
    let hasClaimed = requests.claims.isEmpty ? false : try claim(requests.claims, &answers)
    defer { requests = RequestNotes() }
    return hasClaimed || !requests.settlements.isEmpty
  }

  private func claim(_ claims: [RequestNotes.Claim], _ answers: inout [NoteAnswer]) throws(RegistryError) -> Bool {
    var open: [RequestNotes.Claim] = []
    return try lookAndWrite { () throws(RegistryError) in
      // A repeated claim needs no write.
      let known = try requests(claims.map(\.content.name), claims.map(\.now))
      open = []
      for (claim, known) in zip(claims, known) {
        if let known, known.state != .again || known.body != claim.content.body {
          answers[claim.place] = .claim(known)
        } else {
          open.append(claim)
        }
      }
      return open.isEmpty ? nil : .notes(of: [])
    } write: { () throws(RegistryError) in
      open.sort { $0.content.name.lexicographicallyPrecedes($1.content.name) }
      let isClaimed = try session.ofEach(
        SQL.claimRequest,
        open.flatMap { claim -> [SQLValue] in
          let request = claim.content
          return [.blob(request.name), .blob(request.body), .int(request.until), .int(claim.now), .blob(request.message)]
        }
      ) { _ in true }
      let known = try requests(open.map(\.content.name), open.map(\.now))
      for (index, claim) in open.enumerated() { answers[claim.place] = .claim(isClaimed[index] == true ? nil : known[index]) }
    }
  }

  private func settle(_ settlements: [RequestNotes.Settlement], _ answers: inout [NoteAnswer]) throws(RegistryError) {
    let settlements = settlements.sorted { $0.content.name.lexicographicallyPrecedes($1.content.name) }
    try transaction(.notes(of: [])) { () throws(RegistryError) -> Void in
      var isNoted = [Bool](repeating: false, count: settlements.count)
      var settled: [Asked] = []
      var forgotten: [Int] = []
      for (index, settlement) in settlements.map(\.content).enumerated() {
        let (state, answer): (Int64, [UInt8]?)
        switch settlement.state {
        case nil, .underWay?:
          forgotten.append(index)
          continue
        case .again?: (state, answer) = (Self.again, nil)
        case .accepted?: (state, answer) = (Self.settled, nil)
        case .result(let body)?: (state, answer) = (Self.settled, body.count > Self.mostAnswer ? nil : body)
        }
        let isLate: Int64 = settlement.isLate ? 1 : 0
        settled.append((index, [.blob(settlement.name), .int(state), .blob(answer), .int(settlement.until), .int(isLate)]))
      }
      try session.runEach(SQL.settleRequest, settled.flatMap(\.values)) { row, _ in isNoted[settled[row].index] = true }
      try session.runEach(SQL.forgetRequest, forgotten.map { .blob(settlements[$0].content.name) }) { row, _ in
        isNoted[forgotten[row]] = true
      }
      let rest = isNoted.indices.filter { !isNoted[$0] }
      let known = try requests(rest.map { settlements[$0].content.name }, rest.map { settlements[$0].now })
      for settlement in settlements { answers[settlement.place] = .settle(settlement.content.state) }
      for (index, known) in zip(rest, known) {
        if let known { answers[settlements[index].place] = .settle(known.state) }
      }
    }
  }

  private func requests(_ names: [[UInt8]], _ now: [Int64]) throws(RegistryError) -> [GatewayRequest?] {
    try session.ofEach(SQL.requestByName, zip(names, now).flatMap { [.blob($0), .int($1)] }, Self.request)
  }

  private static func request(_ row: SQLRow) -> GatewayRequest {
    let state: GatewayRequest.State =
      switch row.int(1) {
      case underWay: .underWay
      case again: .again
      default: row.optionalBytes(2).map { .result($0) } ?? .accepted
      }
    return GatewayRequest(body: row.bytes(0), state: state)
  }

  /// - Parameter message: of ``GatewayRequest/message(_:app:)``.
  public func request(ofMessage message: [UInt8], now: Int64) throws(RegistryError) -> GatewayRequest? {
    try session.first(SQL.requestByMessage, [.blob(message), .int(now)], Self.request)
  }

  /// Maximum bytes of a stored answer. Of a longer one, only the acceptance is stored: a key's holder decides how many there
  /// are.
  private static let mostAnswer = 4_096
  private static let underWay: Int64 = 0
  private static let again: Int64 = 1
  private static let settled: Int64 = 2
}

extension SQL {
  static let requestByName = Statement(
    rows: "body, state, answer", from: "gateway_requests WHERE name = ?1 AND until > ?2", .blob, .int)
  static let requestByMessage = Statement("SELECT body, state, answer FROM gateway_requests WHERE message = ?1 AND until > ?2")
  /// Each returns a row if it changes one.
  static let claimRequest = Statement(
    """
    INSERT INTO gateway_requests (name, body, state, until, message) VALUES (?1, ?2, 0, ?3, ?5) ON CONFLICT (name) DO UPDATE
      SET body = excluded.body, state = 0, answer = NULL, until = excluded.until, message = excluded.message
    WHERE gateway_requests.until <= ?4 OR gateway_requests.state = 1 AND gateway_requests.body = excluded.body
    RETURNING 1
    """)
  static let settleRequest = Statement(
    """
    UPDATE gateway_requests SET state = ?2, answer = ?3, until = ?4
    WHERE name = ?1 AND (state < 2 OR answer IS NULL AND CAST(?5 AS BIGINT) = 1) RETURNING 1
    """)
  static let forgetRequest = Statement("DELETE FROM gateway_requests WHERE name = ?1 AND state = 0 RETURNING 1")
}
