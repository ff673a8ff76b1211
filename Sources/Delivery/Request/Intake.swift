import AMQP
import PushCore
import Wire

/// The first steps of a request: identity, application, limits and deadline.
package struct Intake {
  let apps: Applications
  let limits: RequestLimits
  /// The limit of `data.ext` in bytes if it may become a page; nil if pages are not used.
  var pageBytes: Int?

  /// Four weeks, GCM's default and maximum (GS-060, GS-061).
  static let longestLife: Int64 = 2_419_200_000
  /// Milliseconds that a request with a `time_to_live` of 0 may have waited in the queue.
  static let graceOfNow: Int64 = 10_000

  /// Reads message id and application before the body, so that an unreadable request has its outcome under them.
  func identify(_ entry: InFlight, _ delivery: borrowing Delivery, using random: inout RandomSource) {
    if let id = delivery.properties.messageID, !id.isEmpty {
      entry.identity.messageID = id
    } else {
      entry.identity.messageID = UUIDText.random(using: &random)
    }
    if let appID = delivery.properties.appID, !appID.isEmpty {
      entry.identity.app = apps.index(of: appID)
    } else {
      entry.identity.app = apps.only
    }
  }

  /// Checks an identified delivery and fills in its entry: app, request, deadline, attempts.
  /// - Parameters:
  ///   - record: the retry record of an earlier round.
  ///   - firstSeen: unix milliseconds when a worker first saw the request; nil if not noted.
  func admit(
    _ entry: InFlight, _ delivery: borrowing Delivery, _ record: RetryRecord?, firstSeen: Int64? = nil, at now: Int64
  ) -> Rejection? {
    guard TextForm.isPlainLine(entry.identity.messageID) else {
      return Rejection(.invalidParameters, "message_id: a control character in it")
    }
    if let rejection = Self.checkEncoding(delivery.properties) { return rejection }
    if delivery.bodySize > UInt64(limits.json.bytes) {
      let reason = "the body has \(delivery.bodySize) bytes, the limit is \(limits.json.bytes)"
      return Rejection(.messageTooBig, reason)
    }
    let (request, app): (SendRequest, Int)
    do {
      request = try parse(delivery.body, for: entry.identity.app)
      if let known = entry.identity.app {
        app = known
      } else {
        app = try self.app(delivery.properties.appID, request.restrictedPackageName)
      }
    } catch { return error }
    entry.identity.app = app
    if !request.isOnly(for: apps[app].packages) {
      return Rejection(.invalidPackageName, "restricted_package_name: is not a package of the application that is sent to")
    }
    if let record {
      entry.attempt.earlier = record.attempts
      entry.attempt.round = record.round
      entry.attempt.putOffAt = record.putOffAt
      entry.identity.clockLag = record.lag(at: now)
      entry.attempt.lastFailure = (record.error, record.reason, record.status)
    }
    let seen = firstSeen.map { min(max($0, 0), now) } ?? now
    let dated = Self.published(delivery.properties, at: now)
    let published = dated ?? seen
    entry.identity.published = published
    entry.identity.isDated = dated != nil
    let lifetime = request.lifetime ?? request.expirationOfTokens.map { Self.lifetime(until: $0, from: published) }
    entry.identity.deadline =
      record?.deadline ?? Self.deadline(lifetime, delivery.properties, from: published, seen: seen)
    entry.request = request
    entry.attempt.isLast = lifetime == 0
    return nil
  }

  /// - Parameter app: nil if only the body may name the application; then its limits apply.
  private func parse(_ body: [UInt8], for app: Int?) throws(Rejection) -> SendRequest {
    if let app { return try SendRequest(parsing: body, limits: limits(of: app)) }
    do {
      let request = try SendRequest(parsing: body, limits: limits)
      guard let app = apps.index(ofPackage: request.restrictedPackageName), apps[app].countsBadges else { return request }
      return try SendRequest(parsing: body, limits: limits(of: app))
    } catch {
      var widest = limits
      widest.ignoresUnknownNames = true
      widest.extensionBytes = pageBytes
      guard error.code == .invalidParameters || error.code == .messageTooBig,
        let request = try? SendRequest(parsing: body, limits: widest),
        let app = apps.index(ofPackage: request.restrictedPackageName), apps[app].ignoresUnknownNames || apps[app].isUPMC
      else { throw error }
      return try SendRequest(parsing: body, limits: limits(of: app))
    }
  }

  private func limits(of app: Int) -> RequestLimits {
    var limits = limits
    limits.ignoresUnknownNames = apps[app].ignoresUnknownNames
    if apps[app].isUPMC { limits.extensionBytes = pageBytes }
    limits.countsBadges = apps[app].countsBadges
    return limits
  }

  /// The application of a request that `app_id` doesn't identify.
  private func app(_ id: [UInt8]?, _ package: [UInt8]?) throws(Rejection) -> Int {
    if let id, !id.isEmpty { throw Rejection(.invalidParameters, "app_id: no such application is configured") }
    guard let package else {
      throw Rejection(.invalidParameters, "app_id is missing and \(apps.count) applications are configured")
    }
    if let app = apps.index(ofPackage: package) { return app }
    throw Rejection(.invalidParameters, "restricted_package_name: no such application is configured")
  }

  /// Seconds from `published` until a unix time in seconds, negative if it has passed; 0 for 0, which means now or never.
  private static func lifetime(until end: Int64, from published: Int64) -> Int {
    end == 0 ? 0 : Int(min(end - published / 1000, Int64(RequestLimits.longestTimeToLive)))
  }

  /// The earlier end of `time_to_live` and `expiration`. Unix milliseconds.
  /// - Parameter seen: when a worker first saw the request. RabbitMQ counts `expiration` until then.
  static func deadline(
    _ lifetime: Int?, _ properties: borrowing BasicProperties, from published: Int64, seen: Int64
  ) -> Int64 {
    if lifetime == 0 { return published + graceOfNow }
    let end = published + (lifetime.map { Int64($0) * 1000 } ?? longestLife)
    guard let expiration = properties.expiration, let milliseconds = Int64(String(decoding: expiration, as: UTF8.self)),
      milliseconds >= 0, milliseconds <= longestLife
    else { return end }
    return min(end, seen + milliseconds)
  }

  /// When the producer published, in unix milliseconds; nil if there is no timestamp or it is in the future.
  static func published(_ properties: borrowing BasicProperties, at now: Int64) -> Int64? {
    guard let timestamp = properties.timestamp, timestamp > 0, timestamp <= UInt64(now / 1000) else { return nil }
    return Int64(timestamp) * 1000
  }

  /// When the broker received the request, in unix milliseconds, as noted by RabbitMQ's timestamp interceptor or plugin
  /// (https://www.rabbitmq.com/docs/message-interceptors). Nil if it isn't within the second of `timestamp`.
  static func milliseconds(_ headers: borrowing FieldTable, within published: Int64) -> Int64? {
    headers.integer("timestamp_in_ms").flatMap { $0 >= published && $0 - published < 1_000 ? $0 : nil }
  }

  /// The time for the order of replacement, in unix milliseconds: the producer's timestamp, even if it is up to five minutes
  /// ahead of this clock; otherwise `published`.
  static func dateForOrder(_ properties: borrowing BasicProperties, published: Int64, at now: Int64) -> Int64 {
    Self.published(properties, at: now + mostAhead) ?? published
  }

  /// Milliseconds by which a producer's clock may be ahead of this one.
  private static let mostAhead: Int64 = 300_000

  private static func checkEncoding(_ properties: borrowing BasicProperties) -> Rejection? {
    if let type = properties.contentType, type != jsonType, !isJSON(type) {
      return Rejection(.invalidParameters, "content_type must be application/json or absent")
    }
    if let encoding = properties.contentEncoding, !encoding.isEmpty,
      !plainEncodings.contains(where: { TextForm.isAnyCase(encoding, of: $0) })
    {
      return Rejection(.invalidParameters, "content_encoding is not supported: send the JSON as it is, in UTF-8")
    }
    return nil
  }

  /// `application/json`, in any letter case, with no other `charset` than UTF-8.
  private static func isJSON(_ type: [UInt8]) -> Bool {
    let parts = String(decoding: type, as: UTF8.self).lowercased().split(separator: ";", omittingEmptySubsequences: false)
    let charsets = parts.dropFirst().map { $0.filter { !" \t\"".contains($0) } }.filter { $0.hasPrefix("charset=") }
    return ["application/json", "application/json "].contains(parts[0])
      && charsets.allSatisfy { $0 == "charset=utf-8" || $0 == "charset=utf8" }
  }

  private static let jsonType = Array("application/json".utf8)
  private static let plainEncodings = ["utf-8", "utf8", "identity"].map { Array($0.utf8) }
}

extension SendRequest {
  /// The lifetime in seconds, from either field; nil for the default.
  var lifetime: Int? { timeToLive ?? androidTimeToLive }

  /// A newer request may replace this one while it waits.
  var isReplaceable: Bool { isCollapsible && !isDryRun }

  /// The end of the lifetime in unix seconds from `apns-expiration`, if all targets are APNs tokens and nothing else limits it.
  /// It doesn't apply to Android devices.
  var expirationOfTokens: Int64? {
    guard lifetime == nil, let expiration = apnsExpiration else { return nil }
    let named = targets.named
    guard !named.isEmpty, named.allSatisfy({ if case .apns = $0 { true } else { false } }) else { return nil }
    return expiration
  }

  func targetText(_ index: Int) -> [UInt8] {
    document.elements(of: targetNode).dropFirst(index).first { _ in true }.map(document.string) ?? []
  }

  var targetTexts: [[UInt8]] { document.elements(of: targetNode).map(document.string) }
}
