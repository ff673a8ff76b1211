import PushCore
import Wire

/// What figures hear of requests and of their pushes.
extension Pipeline {
  func count(_ field: PushCounts.Field, _ entry: InFlight, _ index: Int? = nil, times: Int = 1) {
    let provider = index.map { PushCounts.Provider(entry.recipients[$0].platform) } ?? .none
    counters.pushes.add(field, apps.series.number(of: entry.identity.app), provider, .init(entry.source.queue), times: times)
  }

  /// - Parameter index: nil where no recipient is known.
  func countFailure(_ code: PushError, _ entry: InFlight, _ index: Int? = nil, times: Int = 1) {
    counters.failed[Int(code.code)] += times
    count(.failed(code), entry, index, times: times)
  }

  /// The provider has said its last word. A broadcast's devices don't count: they are sent to as fast as they can be.
  func noteAnswered(_ entry: InFlight, _ index: Int) {
    guard entry.identity.isDated, !entry.isOfCampaign else { return }
    let exact = Intake.milliseconds(entry.delivery.properties.headers, within: entry.identity.published)
    let seconds = Double(time.wallClock - (exact ?? entry.identity.published)) / 1000
    times.answered(
      .init(entry.recipients[index].platform), .init(entry.source.queue), after: max(seconds, 0), isExact: exact != nil)
  }

  // MARK: the ledger

  /// The request is none that was in hand already.
  func enterAccount(_ entry: InFlight) {
    guard entry.source.account == nil, !entry.source.queue.isFanOut else { return }
    let series = apps.series.number(of: entry.identity.app)
    entry.source.account = series
    counters.ledger.add(wasPutOff(entry) ? .resumed : .accepted, series)
    counters.ledger.add(.inHand, series)
  }

  func closeAccount(_ entry: InFlight, _ end: RequestLedger.Entry) {
    guard let series = entry.source.account else { return }
    entry.source.account = nil
    counters.ledger.add(.inHand, series, -1)
    counters.ledger.add(end, series)
  }

  /// A worker had put it off. What an operator has replayed was settled, as a dead letter.
  private func wasPutOff(_ entry: InFlight) -> Bool {
    noteReader.areNotesOurs(exchange: entry.delivery.exchange, queue: entry.source.queue)
      && entry.delivery.properties.headers[DeadLetter.errorHeader] == nil
  }

  /// Seconds since the oldest request in hand was taken; 0 where none is.
  var oldestAge: Double {
    var oldest = time.now
    for entry in table.entries where entry.isInUse && !entry.ledger.isOrphan { oldest = min(oldest, entry.source.takenAt) }
    return time.now.seconds(since: oldest)
  }
}
