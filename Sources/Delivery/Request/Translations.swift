import PushCore

/// Translates a request once for all recipients with the same push, and keeps the translation in the request.
struct Translations {
  let translator: Translator
  let observers: Observers

  func apns(of entry: InFlight, _ way: PushWay, at now: Int64) -> Result<APNsTemplate, Rejection> {
    if entry.route.apnsPool == way.pool, let template = entry.route.apns, template.isBroadcast == way.isChannel {
      return .success(template)
    }
    var report: LossReport?
    let made = translator.apns(entry, pool: way.pool, isBroadcast: way.isChannel, at: now, &report)
    guard case .success(let template) = made else { return made }
    observers.note(.translated(.apns), entry)
    entry.route.apns = template
    entry.route.apnsPool = way.pool
    return made
  }

  func fcm(of entry: InFlight, at now: Int64) -> Result<FCMTemplate, Rejection> {
    if let template = entry.route.fcm { return .success(template) }
    var report: LossReport?
    // FCM's validation of a dry run needs no page.
    let made = translator.fcm(entry, isRehearsed: entry.request?.isDryRun == true, at: now, &report)
    if case .success(let template) = made {
      observers.note(.translated(.fcm), entry)
      entry.route.fcm = template
    }
    return made
  }

  func webpush(of entry: InFlight, at now: Int64) -> Result<WebPushTemplate, Rejection> {
    if let template = entry.route.webpush { return .success(template) }
    var report: LossReport?
    let made = translator.webpush(entry, at: now, &report)
    if case .success(let template) = made {
      observers.note(.translated(.webpush), entry)
      entry.route.webpush = template
    }
    return made
  }

  /// A translation for a list's devices may be too large for its topics.
  func fcm(of entry: InFlight, _ index: Int, at now: Int64) -> Result<FCMTemplate, Rejection> {
    let made = fcm(of: entry, at: now)
    guard entry.recipients[index].kind != .device, case .success(let template) = made, let request = entry.request,
      let refusal = template.refusalForTopics(of: request)
    else { return made }
    return .failure(refusal)
  }
}
