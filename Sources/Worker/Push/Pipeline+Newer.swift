import AMQP
import PushCore

/// While a fleet is brought up to date, or back, a worker may meet what a newer one has noted on a message. It can't tell what is left
/// to do, and so leaves the message to one that can.
extension Pipeline {
  /// On to the ladder as it came, at no attempt's cost; after four weeks, beyond which no request lives, to the dead letters.
  func leaveToNewer(_ entry: InFlight) {
    let now = time.wallClock
    var since = now
    if case .integer(let earlier)? = entry.delivery.properties.headers[OutcomePublications.asideSince] {
      since = min(earlier, now)
    }
    guard now - max(since, 0) <= Intake.longestLife else {
      return reject(entry, Rejection(.unavailable, "no worker of the version that wrote its headers has come for four weeks"))
    }
    observers.note(.parked, entry)
    noteNewer(entry)
    let delay = min(max(now - since, Self.shortestWaitForNewer), Self.longestWaitForNewer)
    conclude(entry) { publish(publications.aside(since: since, after: delay, for: entry)) }
  }

  /// A fleet is brought up to date within minutes: no need to look every second.
  private static let shortestWaitForNewer: Int64 = 60_000
  private static let longestWaitForNewer: Int64 = 900_000

  private func noteNewer(_ entry: InFlight) {
    guard time.now >= nextNewerNotice else { return }
    nextNewerNotice = time.now.advanced(bySeconds: 60)
    log.warning(
      "messages of a newer worker wait for one: this version can't read their headers", ["queue": entry.source.queue.origin])
  }
}
