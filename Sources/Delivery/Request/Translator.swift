import AMQP
import Broker
import PushCore
import Settings

/// Translates an admitted request for a provider, with its application's settings. Workers, dry runs and `explain` all use
/// this.
package struct Translator {
  let apps: Applications
  /// Nil if `data.ext` never becomes a page.
  var pages: RichPageSettings?

  struct Choice {
    var sender: [UInt8]?
    var environment: APNsConfiguration.Environment?
    var unknownOutcome: UnknownOutcome?

    /// Distinguishes requests that differ only in these choices.
    var name: [UInt8]? {
      guard let environment else { return sender }
      return (sender ?? []) + [0] + Array(environment.rawValue.utf8)
    }
  }

  func choice(of headers: FieldTable) throws(Rejection) -> Choice {
    let sender = headers.sender
    if sender == nil, headers[MessageHeaders.sender] != nil {
      throw Rejection(.mismatchSenderID, "\(MessageHeaders.sender): must be a string or an integer")
    }
    return Choice(
      sender: sender,
      environment: try Self.word(MessageHeaders.environment, in: headers, expected: #""production" or "sandbox""#),
      unknownOutcome: try Self.word(MessageHeaders.unknown, in: headers, expected: #""retry" or "drop""#))
  }

  private static func word<Word: RawRepresentable<String>>(
    _ name: String, in headers: FieldTable, expected: String
  ) throws(Rejection) -> Word? {
    guard let value = headers[name] else { return nil }
    guard case .string(let text) = value, let word = Word(rawValue: String(decoding: text, as: UTF8.self)) else {
      throw Rejection(.invalidParameters, "\(name): expected \(expected)")
    }
    return word
  }

  /// Chooses the credentials of the named sender and environment.
  func route(_ entry: InFlight, _ choice: Choice) -> Rejection? {
    guard let app = entry.identity.app else { return nil }
    if let sender = choice.sender {
      guard let own = apps[app].senders[sender] else {
        return Rejection(.mismatchSenderID, "\(MessageHeaders.sender): no such sender of the application is configured")
      }
      entry.route.routes = own
    } else {
      entry.route.routes = apps[app].routes
    }
    if let environment = choice.environment, entry.route.routes.apnsRoute(environment) == nil {
      return Rejection(
        .invalidParameters,
        "\(MessageHeaders.environment): the application has no APNs credential for \(environment.rawValue)")
    }
    entry.route.environment = choice.environment
    entry.route.unknownOutcome = choice.unknownOutcome ?? apps[app].unknownOutcome
    return nil
  }

  /// - Parameter isRehearsed: nothing is sent, so a page need not exist.
  func apns(
    _ entry: InFlight, pool: Int, isBroadcast: Bool = false, isRehearsed: Bool = false, at now: Int64,
    _ report: inout LossReport?
  ) throws(Rejection) -> APNsTemplate {
    guard let request = entry.request,
      let settings = entry.route.routes.apnsSettings(of: pool) ?? otherSettings(of: pool, entry)
    else {
      throw Rejection(.mismatchSenderID, "the sender has no APNs credential")
    }
    return try APNsTemplate(
      request, settings: settings, context: context(of: entry, isRehearsed: isRehearsed, at: now),
      isBroadcast: isBroadcast, report: &report)
  }

  /// - Parameter deadline: nil for the request's own.
  func fcm(
    _ entry: InFlight, isRehearsed: Bool = false, deadline: Int64? = nil, at now: Int64, _ report: inout LossReport?
  ) throws(Rejection) -> FCMTemplate {
    guard let request = entry.request else { throw Self.noRequest }
    return try FCMTemplate(
      request, settings: entry.route.routes.fcmSettings,
      context: context(of: entry, isRehearsed: isRehearsed, deadline: deadline, at: now), report: &report)
  }

  func webpush(
    _ entry: InFlight, isRehearsed: Bool = false, at now: Int64, _ report: inout LossReport?
  ) throws(Rejection) -> WebPushTemplate {
    guard let request = entry.request else { throw Self.noRequest }
    return try WebPushTemplate(
      request, standard: entry.route.routes.webPushPriority, context: context(of: entry, isRehearsed: isRehearsed, at: now),
      report: &report)
  }

  private static let noRequest = Rejection(.internalServerError, "the request is no longer there")

  /// A registered device may need another sender's pool than the request's.
  func otherSettings(of pool: Int, _ entry: InFlight) -> APNsSettings? {
    guard let app = entry.identity.app else { return nil }
    let senders = apps[app].senders.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map(\.value)
    return ([apps[app].routes] + senders + apps[app].formerSenders).lazy.compactMap { $0.apnsSettings(of: pool) }.first
  }

  private func context(
    of entry: InFlight, isRehearsed: Bool, deadline: Int64? = nil, at now: Int64
  ) -> TranslationContext {
    var context = TranslationContext(
      now: now, deadline: deadline ?? entry.identity.deadline, messageID: entry.identity.messageID,
      published: entry.identity.published)
    context.isKept = entry.registry.isKept
    if let address = entry.registry.contentPage {
      context.page = address
    } else if isRehearsed, entry.route.routes.isUPMC {
      context.page = pages?.example
    }
    return context
  }
}

extension FieldTable {
  /// The value of `x-push-sender`. GCM's sender ids are numbers, and many clients write them as integers.
  var sender: [UInt8]? {
    switch self[MessageHeaders.sender] {
    case .string(let name): name
    case .integer(let number): Array(String(number).utf8)
    default: nil
    }
  }
}
