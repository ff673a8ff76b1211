import PushCore

/// Translates a request once for all of its recipients that get the same push, and keeps what comes of it with the request.
struct Translations {
  let translator: Translator
  let observers: Observers

  func apns(of entry: InFlight, _ way: PushWay, at now: Int64) -> Result<APNsTemplate, Rejection> {
    if entry.route.apnsPool == way.pool, let template = entry.route.apns, template.isBroadcast == way.isChannel {
      return .success(template)
    }
    var report: LossReport?
    let made = translator.apns(entry, pool: way.pool, isBroadcast: way.isChannel, at: now, &report)
    if case .success(let template) = made {
      observers.note(.translated(.apns), entry)
      entry.route.apns = template
      entry.route.apnsPool = way.pool
    }
    return made
  }

  func fcm(of entry: InFlight, at now: Int64) -> Result<FCMTemplate, Rejection> {
    if let template = entry.route.fcm { return .success(template) }
    var report: LossReport?
    // What FCM only validates needs no page.
    let made = translator.fcm(entry, isRehearsed: entry.parsed?.isDryRun == true, at: now, &report)
    if case .success(let template) = made {
      observers.note(.translated(.fcm), entry)
      entry.route.fcm = template
    }
    return made
  }

  /// What devices of a list take may be too large for its topics.
  func fcm(of entry: InFlight, _ index: Int, at now: Int64) -> Result<FCMTemplate, Rejection> {
    let made = fcm(of: entry, at: now)
    guard entry.recipients[index].kind != .device, case .success(let template) = made, let request = entry.request,
      let refusal = template.refusalForTopics(of: request)
    else { return made }
    return .failure(refusal)
  }
}
