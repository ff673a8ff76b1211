import Broker
import DeviceRegistry
import PushCore
import Wire

/// Finds devices that haven't registered for longer than the configuration allows, publishes feedback about them, and marks
/// them stale once the feedback is confirmed. Broadcasts skip stale devices. It reads all devices, a portion each second, and
/// begins again after a pause. Each process does so, and skips devices that another one has claimed within the last ten
/// minutes.
package final class StaleWatch: ConsequenceOwner {
  private let tools: ShardTools
  /// Milliseconds.
  private let staleAfter: Int64
  private var cursor: Int64 = 0
  private var nextLook = MonotonicTime(nanoseconds: 0)
  private var isAsking = false
  /// Claimed devices whose feedback isn't confirmed.
  private var waiting: Set<Int64> = []
  /// Devices with confirmed feedback that aren't marked yet.
  private var unmarked: [Int64] = []
  package private(set) var counters = Counters()

  /// The limits of devices read, and of those claimed, in a second.
  private static let portion = 20_000
  private static let mostClaimed = 500
  /// The lifetime of a claim in milliseconds. An older one belongs to a dead process.
  private static let lease: Int64 = 600_000

  package init(_ tools: ShardTools, after staleAfter: Int64) {
    self.tools = tools
    self.staleAfter = staleAfter
  }

  /// To be called about once a second.
  package func look() {
    mark()
    guard !isAsking, waiting.isEmpty, unmarked.isEmpty, tools.time.now >= nextLook, !tools.outbox.isFull else { return }
    isAsking = true
    let call = RegistryCall.write(.devices) { [cursor, staleAfter] store, now in
      try store.claimStale(
        after: cursor, portion: Self.portion, seenBefore: now - staleAfter, claimedBefore: now - Self.lease,
        limit: Self.mostClaimed, now: now)
    }
    tools.registry?.call(call) { [weak self] result in self?.claimed(try? result.get()) }
  }

  private func claimed(_ found: StaleDevices?) {
    isAsking = false
    guard let found else { return }
    cursor = found.next ?? 0
    if found.next == nil { nextLook = tools.time.now.advanced(bySeconds: min(max(Double(staleAfter) / 20_000, 1), 3_600)) }
    for device in found.devices {
      waiting.insert(device.id)
      counters.feedback += 1
      tools.outbox.publish(tools.publications.feedback(event(device), .item(Int(device.id), of: self)))
    }
  }

  private func event(_ device: DeviceRecord) -> FeedbackEvent {
    let known = device.device
    return FeedbackEvent(
      event: .stale, app: known.app, platform: known.platform, token: known.token, registration: device.registration,
      reason: "last seen \(String(decoding: Timestamp.text(device.lastSeen), as: UTF8.self))", status: 0,
      messageID: UUIDText.random(using: &tools.time.random), observedAt: tools.time.wallClock,
      details: .init(
        environment: known.environment?.name, sender: known.sender, installation: known.installation, user: known.user,
        kind: (known.kind ?? .alert).name))
  }

  package func publicationConfirmed(_ number: Int) {
    guard let device = waiting.remove(Int64(number)) else { return }
    unmarked.append(device)
    if waiting.isEmpty { mark() }
  }

  /// Retries later what can't be marked now. If the process ends first, another one publishes the feedback again.
  private func mark() {
    guard !isAsking, !unmarked.isEmpty, waiting.isEmpty else { return }
    isAsking = true
    let (devices, seenBefore) = (unmarked, tools.time.wallClock - staleAfter)
    let call = RegistryCall.write(.devices) { try $0.markStale(devices, seenBefore: seenBefore, now: $1) }
    tools.registry?.call(call) { [weak self] result in
      self?.isAsking = false
      if case .success = result { self?.unmarked = [] }
    }
  }
}
