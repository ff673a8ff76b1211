import DeviceRegistry
import PushCore
import StatusHTTP

/// `GET /v1/apps/<app>/messages/<id>` and `GET /v1/fleet/apps/<app>/messages/<id>`: what became of a request, as far as this gateway
/// or the registry knows.
enum MessageStates {
  /// The result if there is one. Until then, the broker has the request, or it has perhaps not accepted it.
  private typealias Known = (isAccepted: Bool, result: [UInt8]?)

  static func take(_ call: HTTPCall, _ key: GatewayKey, app: [UInt8], id: [UInt8]) {
    guard key.apps.contains(app) else { return call.refuse(.foreignApp) }
    let remembered = call.parts.send.state(ofMessage: id, app: app).map(Self.known)
    if remembered?.result != nil { return answer(call, id, remembered) }
    let message = GatewayRequest.message(id, app: app)
    call.parts.registry.call(
      .read { (try $0.request(ofMessage: message, now: $1)?.state, try $0.campaign(ofMessage: id, app: app)) }
    ) { result in
      switch result {
      case .success(let (stored, campaign)): answer(call, id, Self.known(stored, campaign) ?? remembered)
      case .failure where remembered != nil: answer(call, id, remembered)
      case .failure: call.refuse(.unavailable("the registry can't be read for now"))
      }
    }
  }

  private static func known(_ remembered: RequestWindow.State) -> Known {
    switch remembered {
    case .answered(.result(let body)), .failed(.result(let body)): (true, body)
    case .answered, .failed: (true, nil)
    case .waiting, .again: (false, nil)
    }
  }

  private static func known(_ stored: GatewayRequest.State?, _ campaign: Campaign?) -> Known? {
    if case .result(let body)? = stored { return (true, body) }
    guard let campaign else { return stored.map { ($0 == .accepted, nil) } }
    guard campaign.finishedAt != nil else { return (true, nil) }
    let result = SendResult.fanOut(
      messageID: campaign.description.messageID, success: Int(campaign.sent), failure: Int(campaign.failed),
      unknown: Int(campaign.unknown), failures: campaign.failures)
    return (true, result)
  }

  private static func answer(_ call: HTTPCall, _ id: [UInt8], _ known: Known?) {
    // The console asks again and again, and a browser logs each 404.
    guard known != nil || call.path[1].elementsEqual("fleet".utf8) else {
      return call.refuse(
        "NotFound",
        "no gateway knows this message: a request with an Idempotency-Key is kept for ten minutes, a broadcast for 30 days; "
          + "pushfleet trace may know more",
        status: 404)
    }
    let state = known.map { $0.result != nil ? "done" : $0.isAccepted ? "accepted" : "unknown" }
    call.answer(
      .json(200, ["message_id": id, "state": state, "result": JSONOptional(known?.result.map { JSONRaw($0) })]))
  }
}
