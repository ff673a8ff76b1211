import PushCore
import Storage

/// From registrations, and rows of the registry, to recipients.
extension Pipeline {
  /// A registration that is to be looked up together with the others of its turn.
  struct Unresolved {
    var place: RegistryDesk.Place
    var app: Int
    var registration: [UInt8]
  }

  /// At the end of a turn: the registrations of all requests that the turn has brought, whatever their app. All of one request's are looked up
  /// together, since its recipients refer to the rows of one answer.
  func resolveRegistrations() {
    guard !unresolved.isEmpty else { return }
    let all = unresolved
    unresolved.removeAll(keepingCapacity: true)
    var start = 0
    var end = 0
    while start < all.count {
      repeat {
        let entry = all[end].place.entry
        while end < all.count, all[end].place.entry == entry { end += 1 }
      } while end < all.count && end - start < Self.registrationsPerLookUp
      let batch = all[start..<end]
      ask(
        .resolve(batch.map(\.place)),
        .resolve(batch.map { LookUp(app: apps[$0.app].id, registration: $0.registration) }))
      start = end
    }
  }

  private static let registrationsPerLookUp = 1_000

  func resolved(_ places: [RegistryDesk.Place], _ resolution: Resolution) {
    for (place, answer) in zip(places, resolution.entries) {
      with(place.entry, place.generation) { entry in
        guard !entry.ledger.isConcluded else { return }
        entry.rows = resolution.devices
        if case .devices(let rows) = answer {
          addMembers(rows, of: place.recipient, resolution.devices, entry)
        } else {
          entry.recipients[place.recipient] = recipient(for: answer, resolution.devices, entry)
        }
        entry.unresolved -= 1
        if entry.unresolved == 0 { registrationsKnown(entry) }
      }
    }
  }

  /// The first device of a list's user, group or topic takes its place, the others stand after all of the list's entries.
  private func addMembers(_ members: [Int], of place: Int, _ rows: DeviceRows, _ entry: InFlight) {
    guard let first = members.first, entry.recipients.count + members.count <= Self.mostRecipients else {
      let reason = "no such user, device group or topic, or none of its devices is registered, or too many of them for a list"
      entry.recipients[place].state = .refused(Rejection(.invalidRegistration, reason))
      return
    }
    entry.recipients[place] = recipient(rows, first, entry)
    let start = entry.recipients.count
    for member in members.dropFirst() { entry.recipients.append(recipient(rows, member, entry)) }
    entry.members.append((place, start..<entry.recipients.count))
  }

  /// How far so many have come still fits the header that a list carries on the ladder, which has to fit a frame of 128 KiB.
  private static let mostRecipients = 1_500

  private func recipient(for answer: ResolvedRegistration, _ rows: DeviceRows, _ entry: InFlight) -> Recipient {
    guard case .device(let row, let isCanonical) = answer else {
      return Recipient(
        platform: .apns, token: [], pool: -1, state: .refused(Rejection(.invalidRegistration, "no such registration")))
    }
    var found = recipient(rows, row, entry)
    found.isOldRegistration = !isCanonical
    return found
  }

  /// The devices are known: those named twice get one push, and the request goes on as any other.
  private func registrationsKnown(_ entry: InFlight) {
    var places: [[UInt8]: Int] = [:]
    for index in entry.recipients.indices where entry.recipients.count > 1 {
      // A token that is named by itself is sent to, whatever the registry knows of it.
      var kind: UInt8 = 0
      switch entry.recipients[index].state {
      case .waiting: break
      case .gone: kind = 1
      case .unresolved, .refused, .sent, .delivered, .failed, .postponed, .sameAs: continue
      }
      let key = [kind, entry.recipients[index].platform.rawValue] + entry.recipients[index].token
      if let earlier = places[key] { entry.recipients[index].state = .sameAs(earlier) } else { places[key] = index }
    }
    sendRecipients(of: entry)
  }

  /// A device of the registry, by the credential of its sender and environment.
  func recipient(_ rows: DeviceRows, _ index: Int, _ entry: InFlight) -> Recipient {
    let row = rows[index]
    var pool = -1
    var state = Recipient.State.waiting
    if row.state == .gone {
      state = .gone
    } else if let routes = row.hasSender ? routes(for: rows.sender(index), entry) : entry.routes {
      pool = routes.pool(of: row.platform, row.environment) ?? -1
      if pool < 0 {
        state = .refused(.noCredential)
      }
    } else {
      state = .refused(.otherSender)
    }
    return Recipient(platform: row.platform, token: rows.token(index), pool: pool, state: state, row: index)
  }

  /// The device's own sender where the request names none; nil where it names another one, or the app has senders but not this
  /// one (GS-083).
  private func routes(for sender: ArraySlice<UInt8>, _ entry: InFlight) -> Routes? {
    guard let app = entry.app else { return entry.routes }
    if let named = entry.delivery.properties.headers.string("x-push-sender") {
      return named.elementsEqual(sender) ? entry.routes : nil
    }
    return apps[app].senders[Array(sender)] ?? (apps[app].senders.isEmpty ? entry.routes : nil)
  }
}
