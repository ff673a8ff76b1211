import PushCore

/// Translates a request once for all recipients with the same push, and keeps the translation in the request.
struct Translations {
  let translator: Translator
  let observers: Observers

  func apns(of entry: InFlight, _ way: PushWay, at now: Int64) throws(Rejection) -> APNsTemplate {
    if entry.route.apnsPool == way.pool, let template = entry.route.apns, template.isBroadcast == way.isChannel {
      return template
    }
    var report: LossReport?
    let template = try translator.apns(entry, pool: way.pool, isBroadcast: way.isChannel, at: now, &report)
    observers.note(.translated(.apns), entry)
    entry.route.apns = template
    entry.route.apnsPool = way.pool
    return template
  }

  func fcm(of entry: InFlight, at now: Int64) throws(Rejection) -> FCMTemplate {
    if let template = entry.route.fcm { return template }
    var report: LossReport?
    // FCM's validation of a dry run needs no page.
    let template = try translator.fcm(entry, isRehearsed: entry.request?.isDryRun == true, at: now, &report)
    observers.note(.translated(.fcm), entry)
    entry.route.fcm = template
    return template
  }

  func webpush(of entry: InFlight, at now: Int64) throws(Rejection) -> WebPushTemplate {
    if let template = entry.route.webpush { return template }
    var report: LossReport?
    let template = try translator.webpush(entry, at: now, &report)
    observers.note(.translated(.webpush), entry)
    entry.route.webpush = template
    return template
  }

  /// A translation for a list's devices may be too large for its topics.
  func fcm(of entry: InFlight, _ index: Int, at now: Int64) throws(Rejection) -> FCMTemplate {
    let template = try fcm(of: entry, at: now)
    if entry.recipients[index].kind != .device, let request = entry.request,
      let refusal = template.refusalForTopics(of: request)
    {
      throw refusal
    }
    return template
  }
}
