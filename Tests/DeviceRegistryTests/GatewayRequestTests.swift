import Testing

@testable import DeviceRegistry

@Suite("Requests of several gateways, on both databases")
struct GatewayRequestTests {
  private let name = [UInt8](repeating: 1, count: 32)
  private let body = [UInt8](repeating: 2, count: 32)

  @Test(
    "the first to claim a request has it, and its outcome is valid for all, until its time is over",
    arguments: Backend.all)
  func claimed(_ backend: Backend) throws {
    let registry = try backend.open()
    let (one, other) = (registry.store, try registry.another())
    func claim(_ store: DeviceStore, at now: Int64, _ body: [UInt8]? = nil) throws -> GatewayRequest? {
      try store.claimRequest(name, body: body ?? self.body, until: now + 1_000, now: now)
    }
    #expect(try claim(one, at: 0) == nil)
    #expect(try claim(other, at: 1) == GatewayRequest(body: body, state: .underWay))
    #expect(try claim(other, at: 1, [7])?.body == body)
    #expect(try one.settleRequest(name, .again, until: 1_000, now: 2) == .again)
    // One of the repetitions has it then.
    #expect(try claim(other, at: 3, [7])?.state == .again)
    #expect(try claim(other, at: 3) == nil)
    #expect(try claim(one, at: 3)?.state == .underWay)
    #expect(try one.settleRequest(name, .result([0, 255]), until: 1_000, now: 4) == .result([0, 255]))
    // A later gateway with another outcome gets the stored one.
    for late in [GatewayRequest.State.accepted, .again, .result([])] {
      #expect(try other.settleRequest(name, late, until: 5_000, now: 5) == .result([0, 255]))
    }
    #expect(try other.settleRequest(name, nil, until: 5_000, now: 5) == .result([0, 255]))
    #expect(try claim(other, at: 999)?.state == .result([0, 255]))
    #expect(try claim(other, at: 1_000, [7]) == nil)
    #expect(try claim(one, at: 1_001) == GatewayRequest(body: [7], state: .underWay))
  }

  @Test(
    "a request is found by its message while it is kept, and a late result replaces its acceptance", arguments: Backend.all)
  func byMessage(_ backend: Backend) throws {
    let registry = try backend.open()
    let message = GatewayRequest.message(Array("m".utf8), app: Array("a".utf8))
    func found(_ name: [UInt8], at now: Int64) throws -> GatewayRequest.State? {
      try registry.store.request(ofMessage: name, now: now)?.state
    }
    #expect(try registry.store.claimRequest(name, message: message, body: body, until: 100, now: 0) == nil)
    #expect(try found(message, at: 1) == .underWay)
    #expect(try registry.store.settleRequest(name, .accepted, until: 100, now: 2) == .accepted)
    #expect(try found(message, at: 3) == .accepted)
    // Neither another gateway's outcome nor a result that is too long changes it.
    for other in [nil, .again, .result([7])] as [GatewayRequest.State?] {
      #expect(try registry.store.settleRequest(name, other, until: 100, now: 3) == .accepted)
    }
    let long = GatewayRequest.State.result([UInt8](repeating: 7, count: 4_097))
    _ = try registry.store.settleRequest(name, long, until: 100, isLate: true, now: 3)
    #expect(try found(message, at: 3) == .accepted)
    #expect(try registry.store.settleRequest(name, .result([5]), until: 200, isLate: true, now: 4) == .result([5]))
    #expect(try found(message, at: 199) == .result([5]) && found(message, at: 200) == nil)
    for other in [GatewayRequest.message(Array("n".utf8), app: Array("a".utf8)), Array("am".utf8), []] {
      #expect(try found(other, at: 5) == nil)
    }
    // The next request of this name is another message.
    let next = GatewayRequest.message(Array("n".utf8), app: Array("a".utf8))
    #expect(try registry.store.claimRequest(name, message: next, body: body, until: 400, now: 201) == nil)
    #expect(try found(message, at: 202) == nil && found(next, at: 202) == .underWay)
  }

  @Test("of a long answer only the acceptance is stored; the gateway that made it has all of it", arguments: Backend.all)
  func long(_ backend: Backend) throws {
    let registry = try backend.open()
    for (size, kept) in [(4_096, GatewayRequest.State.result([UInt8](repeating: 7, count: 4_096))), (4_097, .accepted)] {
      let (name, answer) = ([UInt8](repeating: UInt8(size % 7), count: 32), [UInt8](repeating: 7, count: size))
      #expect(try registry.store.claimRequest(name, body: body, until: 100, now: 0) == nil)
      #expect(try registry.store.settleRequest(name, .result(answer), until: 100, now: 1) == .result(answer))
      #expect(try registry.another().claimRequest(name, body: body, until: 100, now: 2)?.state == kept)
    }
  }

  @Test("a refused request is forgotten, and expired ones are removed", arguments: Backend.all)
  func forgotten(_ backend: Backend) throws {
    let registry = try backend.open()
    let store = registry.store
    #expect(try store.claimRequest(name, body: body, until: 10, now: 0) == nil)
    #expect(try store.settleRequest(name, nil, until: 10, now: 1) == nil)
    #expect(try store.claimRequest(name, body: body, until: 10, now: 2) == nil)
    #expect(try store.settleRequest(name, .accepted, until: 20, now: 3) == .accepted)
    #expect(try store.claimRequest(name, body: body, until: 30, now: 19)?.state == .accepted)
    #expect(try store.purge(.requests, before: 19, limit: 10) == 0 && store.purge(.requests, before: 20, limit: 0) == 0)
    #expect(try store.purge(.requests, before: 20, limit: 10) == 1)
    #expect(try store.settleRequest(name, .accepted, until: 20, now: 3) == .accepted)
  }
}
