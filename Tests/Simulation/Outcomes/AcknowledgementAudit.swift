import DeviceRegistry
import PushCore

/// Checks acknowledgements: each is reported to backends and counted in its campaign, and badges equal the sent minus the read
/// ones.
extension FinalAudit {
  func checkAcknowledgements() {
    let ledger = recorder.acknowledgements
    // An acknowledgement stored without a known outcome gets one more receipt for each message that repeats it. So does every
    // one in a failed batch.
    let mayRepeat =
      mayDouble || faultKinds.contains { [.registryDown, .registryFailsBefore, .registryFailsAfter].contains($0) }
    for what in ledger.said.sorted(by: { $0.text < $1.text }) {
      let times = ledger.told[what] ?? []
      if times.isEmpty { world.fail("\(what) has no receipt") }
      if times.count > 1, !mayRepeat { world.fail("\(what) has \(times.count) receipts") }
      if Set(times).count > 1 { world.fail("\(what) is told at \(times)") }
    }
    for what in ledger.told.keys.sorted(by: { $0.text < $1.text }) where !ledger.said.contains(what) {
      world.fail("\(what) is told, and nobody said so")
    }
    checkCampaigns(ledger.said)
    checkBadges(ledger.said)
  }

  private func checkCampaigns(_ said: Set<AcknowledgementLedger.Said>) {
    var counts: [String: (received: Int64, read: Int64)] = [:]
    for what in said {
      switch what.event {
      case .received: counts["\(what.app)/\(what.messageID)", default: (0, 0)].received += 1
      case .read: counts["\(what.app)/\(what.messageID)", default: (0, 0)].read += 1
      }
    }
    for campaign in (try? store.campaigns(limit: 1_000)) ?? [] {
      let id =
        "\(String(decoding: campaign.description.app, as: UTF8.self))/\(String(decoding: campaign.description.messageID, as: UTF8.self))"
      let (received, read) = counts[id] ?? (0, 0)
      if campaign.received != received || campaign.read != read {
        world.fail("\(id) counts \(campaign.received) received and \(campaign.read) read of \(received) and \(read)")
      }
    }
  }

  private func checkBadges(_ said: Set<AcknowledgementLedger.Said>) {
    for (id, badges) in recorder.badges.sorted(by: { $0.key < $1.key }) {
      for (token, numbers) in badges.sorted(by: { $0.key < $1.key }) where numbers.count > 1 {
        world.fail("\(id) was sent to \(token) with the badges \(numbers)")
      }
    }
    var sent: [String: (least: Int64, most: Int64)] = [:]
    for (id, request) in recorder.requests where request.countsBadge {
      guard case .registered(_, let members) = request.audience else { continue }
      for token in members {
        sent[token, default: (0, 0)].most += 1
        if recorder.badges[id]?[token] != nil { sent[token, default: (0, 0)].least += 1 }
      }
    }
    for (token, (least, most)) in sent.sorted(by: { $0.key < $1.key }) {
      let read = Int64(said.count { $0.token == token && $0.event == .read })
      let device = BadgeCount.Device.token(Workload.platform(of: token), Array(token.utf8))
      let look = BadgeCount(
        app: Array(Scenario.app(Workload.app(of: token)).utf8), messageID: Array("look".utf8), rule: .look, devices: [device])
      guard case .badges(let numbers)? = try? store.note([(.badges(look), world.wallClock)]).answers.first,
        let next = numbers[0]
      else {
        world.fail("\(token) has no counter")
        continue
      }
      if !(least - read...most - read).contains(next - 1) {
        world.fail("the badge of \(token) is \(next - 1), with \(least) to \(most) sent and \(read) read")
      }
    }
  }
}
