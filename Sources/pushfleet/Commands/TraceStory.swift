import Broker
import DeviceRegistry
import PushCore

/// Everything known about a request or devices: traced rounds, untraced broadcasts, and acknowledgements.
struct TraceStory {
  struct Request {
    let id: String
    let rounds: [TraceRound]
    let acknowledgements: [Acknowledgement]
    /// The operators' deletions from the queue where the request waits, the newest first; nil if the registry can't tell.
    let deletions: [AuditEvent]?
  }

  struct Acknowledgement {
    let device: DeviceRecord
    let times: AcknowledgementTimes
  }

  private(set) var requests: [Request]
  /// Broadcasts to the devices for which the trace has no push.
  private(set) var broadcasts: [DeviceHistory.Broadcast]
  var isEmpty: Bool { requests.isEmpty && broadcasts.isEmpty }

  /// - Parameter store: nil if no registry can be read.
  init(
    _ rounds: [TraceRound], _ history: DeviceHistory?, _ store: DeviceStore? = nil, prefix: String = ""
  ) throws(RegistryError) {
    // Two applications may use the same message id.
    var order: [[String]] = []
    var byID: [[String]: [TraceRound]] = [:]
    for round in rounds {
      let id = [round.text("message_id"), round.text("app")]
      if byID[id] == nil { order.append(id) }
      byID[id, default: []].append(round)
    }
    let told = Set(
      rounds.flatMap { round in round.pushes.compactMap { ($0["registration_name"] as? String).map { round.page + $0 } } })
    let untold = (history?.broadcasts ?? []).filter { !told.contains($0.place + $0.registrationName) }

    let messages = order.map { Array($0[0].utf8) } + untold.map(\.campaign.description.messageID)
    let all = try history?.acknowledgements(of: messages) ?? []
    func acknowledgements(_ place: Int, of device: DeviceRecord? = nil) -> [Acknowledgement] {
      all.compactMap { owner, times in
        guard device == nil || device?.id == owner.id, !times[place].isEmpty else { return nil }
        return Acknowledgement(device: owner, times: times[place])
      }
    }
    var deletions: [String: [AuditEvent]] = [:]
    for queue in Set(byID.values.compactMap { $0.last?.queueOfWaiting }) {
      deletions[queue] = try store?.auditEvents(subject: Array("queue:\(prefix).\(queue)".utf8), limit: 20)
    }
    requests = order.enumerated().map { place, id in
      let rounds = byID[id] ?? []
      let ended = rounds.last.flatMap { Timestamp.milliseconds(of: Array($0.text("ended_at").utf8)) } ?? 0
      return Request(
        id: id[0], rounds: rounds, acknowledgements: acknowledgements(place),
        deletions: rounds.last?.queueOfWaiting.flatMap { deletions[$0] }?.filter { $0.at >= ended })
    }
    broadcasts = untold.enumerated().map { place, untold in
      var broadcast = untold
      broadcast.acknowledgements = acknowledgements(order.count + place, of: untold.device)
      return broadcast
    }
  }

  func newest(_ count: Int) -> TraceStory {
    var story = self
    story.requests = requests.suffix(count)
    story.broadcasts = broadcasts.sorted { $0.campaign.createdAt < $1.campaign.createdAt }.suffix(count)
    return story
  }

  var json: [[UInt8]] {
    requests.flatMap { request in
      request.rounds.enumerated().map { place, round in
        guard place == request.rounds.count - 1, !request.acknowledgements.isEmpty else { return round.line }
        return JSONObject(of: request.acknowledgements).line(after: round.line)
      }
    } + broadcasts.map(\.json.line)
  }
}

extension TraceRound {
  /// The queue into which the round has put the request, without prefix; nil if the request has ended.
  fileprivate var queueOfWaiting: String? { text("outcome") == "waits" ? text("waits_in") : nil }

  /// Identifies a page of a campaign; empty for other requests.
  fileprivate var page: String { number("page").map { "\(text("campaign"))/\($0)/" } ?? "" }
}

extension DeviceHistory.Broadcast {
  fileprivate var place: String { page.map { "\(campaign.id)/\($0.number)/" } ?? "" }
  fileprivate var registrationName: String { String(decoding: RequestTraceName.of(device.registration[...]), as: UTF8.self) }

  fileprivate var json: JSONObject {
    [
      "message_id": campaign.description.messageID, "app": campaign.description.app, "campaign": campaign.description.id,
      "registration": device.registration, "page": JSONOptional(page?.number),
      "page_sent": JSONOptional(page?.sent), "page_failed": JSONOptional(page?.failed), "outcome": outcome.word,
      "begun_at": Timestamp.text(campaign.createdAt),
    ] + (acknowledgements.isEmpty ? [:] : JSONObject(of: acknowledgements))
  }
}

extension JSONObject {
  fileprivate init(of acknowledgements: [TraceStory.Acknowledgement]) {
    self = [
      "acknowledgements": acknowledgements.map { acknowledgement -> JSONObject in
        [
          "registration": acknowledgement.device.registration,
          "received_at": acknowledgement.times.received.map(Timestamp.text),
          "read_at": acknowledgement.times.read.map(Timestamp.text),
        ]
      }
    ]
  }
}

extension DeviceHistory.Broadcast.Outcome {
  var word: String {
    switch self {
    case .accepted: "delivered"
    case .unknown: "unknown"
    case .left(let state): state.word
    case .open: "waits"
    case .notSent: "not sent"
    }
  }
}
