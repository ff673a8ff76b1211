import AMQP
import Broker
import DeviceRegistry
import Foundation
import Logging
import Providers
import PushCore
import Reactor

extension Configuration {
  /// Reads and checks the configuration file; `environment` overrides single values.
  /// - Parameter path: nil if all values come from the environment.
  public static func load(path: String?, environment: [String: String]) throws(ConfigurationError) -> Configuration {
    var file: ConfigurationValue?
    if let path {
      let text: [UInt8]
      do throws(SystemError) { text = try FileContents.read(path, limit: 16 << 20) } catch {
        throw ConfigurationError(
          key: SafeText.path(path), problem: "cannot be read (\(error.reason)); name a file with --config or PUSHFLEET_CONFIG")
      }
      file = try .parse(text, name: path)
      guard case .object? = file else {
        throw ConfigurationError(key: path, problem: "must hold an object, not \(file?.kind ?? "null")")
      }
    }
    let reading = ConfigurationReading(file, path: path, environment)
    if let error = reading.overlay.errors.first { throw error }
    if reading.isNothingGiven { throw ConfigurationError(key: "broker", problem: "is missing: \(nothingGiven)") }
    if let error = reading.source.errors.first { throw error }
    return reading.configuration
  }

  static let nothingGiven =
    "name a configuration file with --config or PUSHFLEET_CONFIG, or set every value in the environment"

  /// - Parameters:
  ///   - reader: a reader of the whole configuration.
  ///   - environment: for the proxy, if the configuration names none.
  init(_ reader: ConfigurationReader, _ environment: [String: String]) {
    brokerIdentity = IdentityMaterial.read(reader, .broker)
    brokers = []
    let texts = reader.strings("broker") ?? []
    if texts.isEmpty { reader.report("broker", "is missing: an amqp:// or amqps:// address, or a list of them") }
    for text in texts {
      do { brokers.append(try BrokerURI(parsing: text, hasCertificate: brokerIdentity != nil)) } catch {
        reader.report("broker", "is not an AMQP address: \(error)")
      }
    }
    if brokerIdentity != nil, !brokers.isEmpty, !brokers.contains(where: \.isTLS) {
      reader.report("brokerCertificate", "is given, but no address of broker is amqps://")
    }
    proxy = reader.has("proxy") ? reader.proxy() : nil
    reader.source.proxy = proxy ?? ProxyChoice.read(environment, reader.source)
    for key in ["ca", "caFile"] {
      for other in ["brokerCA", "brokerCAFile"] { reader.refuseBoth(key, other) }
    }
    brokerCA = reader.material("ca") ?? reader.material("brokerCA")
    registry = reader.string("registry").map { text in
      do throws(RegistryError) { return try Self.located(text, in: reader.source) } catch {
        let why = if case .unusable(_, let words) = error { words } else { "\(error)" }
        reader.report("registry", "cannot be used: \(why)")
        return .sqlite(path: "")
      }
    }
    registryStaleAfter = reader.time("registryStaleAfter", "a time is a number")
    results = reader.choice("results")
    deadLetters = Set((reader.strings("deadLetters") ?? []).compactMap(PushError.init(rawValue:)))
    receipts = reader.flag("receipts")
    let name = reader.string("prefix") ?? ""
    prefix = Self.isName(name, longest: 64) ? name : ""
    if prefix.isEmpty { reader.report("prefix", "must be 1 to 64 letters, digits, '.', '_' or '-'") }
    prefetch = reader.number("prefetch")
    laneQueues = reader.number("laneQueues")
    shards = reader.number("shards")
    drainTimeout = reader.number("drainTimeout")
    log = reader.choice("log")
    logFormat = reader.string("logFormat").flatMap(LogFormat.init)
    metrics = reader.figures("metrics")
    trace = TraceSettings.read(reader.object("trace"))
    traces = OTLPSettings.read(reader)
    limits = RequestLimits(reader.object("limits"))
    registryLimits = RegistryLimits(reader.object("registryLimits"))
    retry = RetrySettings(reader.object("retry"))
    let (fanOut, breaker) = (reader.object("fanOut"), reader.object("breaker"))
    self.fanOut = FanOutSettings(pageSize: fanOut.number("pageSize"), prefetch: fanOut.number("prefetch"))
    self.breaker = BreakerSettings(percent: breaker.number("percent"), sample: breaker.number("sample"))
    replyTo = Self.replyQueues(reader, Topology(prefix: prefix, ladder: retry.steps, laneQueues: Topology.mostLaneQueues))
    richPages = RichPageSettings.read(reader.object("richPages"))
    gateway = reader.has("gateway") ? GatewaySettings(reader.object("gateway")) : nil
    apps = Self.apps(reader)
    for app in apps {
      let names = [topology.binaryFeedbackQueue(app.id)] + app.webhooks.map { topology.webhookQueue(app.id, $0.name) }
      let longest = names.max { $0.utf8.count < $1.utf8.count } ?? ""
      guard longest.utf8.count > Self.longestName else { continue }
      reader.source.report(
        ["apps", app.id],
        "is too long beside the prefix: \(longest) has \(longest.utf8.count) bytes, a queue's name at most \(Self.longestName)")
    }
    valueFiles = reader.source.files
  }

  /// Resolves the path of an SQLite registry relative to the configuration file.
  private static func located(_ text: String, in source: ConfigurationSource) throws(RegistryError) -> RegistryLocation {
    let location = try RegistryLocation(parsing: text)
    return if case .sqlite(let path) = location { .sqlite(path: source.absolute(path)) } else { location }
  }

  private static func replyQueues(_ reader: ConfigurationReader, _ topology: Topology) -> [String]? {
    let queues = reader.strings("replyTo")
    for queue in queues ?? [] {
      if !(1...longestName).contains(queue.utf8.count) || queue.unicodeScalars.contains(where: { $0.value < 0x20 }) {
        reader.report("replyTo", "has \(SafeText.value(queue)): a queue's name is 1 to 255 bytes without control characters")
      } else if topology.isOwn(queue: queue) {
        reader.report("replyTo", "has \(SafeText.value(queue)), a queue of the fleet's own: no result may go there")
      }
    }
    return queues
  }

  private static func apps(_ reader: ConfigurationReader) -> [AppConfiguration] {
    let entries = reader.entries("apps")
    if entries.isEmpty { reader.report("apps", "is empty: a worker needs at least one app") }
    return entries.compactMap { id, entry in
      if isName(id, longest: 200) { return AppConfiguration(id: id, entry) }
      reader.source.report(["apps", id], "is no application id: up to 200 letters, digits, '.', '_' or '-'")
      return nil
    }
  }

  /// The largest number of bytes in a queue's name.
  private static let longestName = 255

  /// - Parameter marks: the allowed characters besides letters and digits.
  fileprivate static func isName(_ text: String, longest: Int, marks: String = "._-") -> Bool {
    (1...longest).contains(text.utf8.count) && text.utf8.allSatisfy { Bytes.isAlphanumeric($0) || marks.utf8.contains($0) }
  }
}

extension RequestLimits {
  fileprivate init(_ reader: ConfigurationReader) {
    self.init()
    json.bytes = reader.number("body")
    notificationBytes = reader.number("notification")
    dataBytes = reader.number("data")
    topicDataBytes = reader.number("topicData")
  }
}

extension RegistryLimits {
  fileprivate init(_ reader: ConfigurationReader) {
    self.init()
    groupMembers = reader.number("groupMembers")
    topicsPerDevice = reader.number("topicsPerDevice")
    devicesPerUser = reader.number("devicesPerUser")
    batch = reader.number("batch")
  }
}

extension RetrySettings {
  static let defaultSteps = ["1s", "10s", "1m", "5m", "15m", "1h"]

  fileprivate init(_ reader: ConfigurationReader) {
    attempts = reader.number("attempts")
    steps = []
    for text in reader.strings("steps") ?? [] {
      let delay = ConfigurationReader.milliseconds(text, units: ["ms", "s", "m", "h"], in: 100...86_400_000)
      if let delay, delay > (steps.last?.delay ?? 0) {
        steps.append(RetryStep(name: text, delay: delay))
      } else if delay == nil {
        reader.report("steps", "has \(SafeText.value(text)): a step is a number with ms, s, m or h, from 100ms to 24h")
      } else {
        reader.report("steps", "must grow: \(SafeText.value(text)) is no longer than the step before it")
      }
    }
    if steps.isEmpty { reader.report("steps", "is empty: a retry needs somewhere to wait") }
  }
}

extension AppConfiguration {
  fileprivate init(id: String, _ reader: ConfigurationReader) {
    self.id = id
    producers = reader.strings("producers")
    if producers?.isEmpty == true {
      reader.report("producers", "is empty: name those who may publish for the app, or leave it out for everybody")
    } else if producers?.allSatisfy({ (1...255).contains($0.utf8.count) }) == false {
      reader.report("producers", "must be names of the broker's users, 1 to 255 bytes each")
    }
    defaultPriority = reader.choice("defaultPriority")
    isUPMC = reader.flag("upmc")
    countsBadges = reader.flag("countBadges")
    unknownOutcome = reader.choice("unknownOutcomes")
    ignoresUnknownNames = reader.string("unknownKeys") == "ignore"
    credentials = CredentialSet(reader, appID: id)
    senders = [:]
    let entries = reader.has("senders") ? reader.entries("senders") : []
    for (sender, entry) in entries {
      let set = CredentialSet(entry, appID: id)
      if set.isEmpty { entry.report("apns", "is missing: a sender needs apns, fcm, webpush, or some of them") }
      senders[sender] = set.completed(by: credentials)
    }
    if entries.count > Self.mostSenders {
      reader.report("senders", "has \(entries.count) entries; an application has at most \(Self.mostSenders)")
    }
    for (name, entry) in reader.has("webhooks") ? reader.entries("webhooks").sorted(by: { $0.0 < $1.0 }) : [] {
      if let webhook = WebhookConfiguration(name: name, entry) { webhooks.append(webhook) }
      if !Configuration.isName(name, longest: Self.longestWebhook, marks: "-_") {
        entry.report("url", "belongs to a webhook whose name isn't 1 to \(Self.longestWebhook) letters, digits, - and _")
      }
    }
    if webhooks.count > Self.mostWebhooks {
      reader.report("webhooks", "has \(webhooks.count) entries; an application has at most \(Self.mostWebhooks)")
    }
    if credentials.isEmpty, senders.isEmpty {
      reader.report("apns", "is missing: an app needs apns, fcm, webpush, or some of them")
    }
  }

  /// GS-084.
  private static let mostSenders = 100
  private static let mostWebhooks = 10
  private static let longestWebhook = 32
}

extension CredentialSet {
  fileprivate init(_ reader: ConfigurationReader, appID: String) {
    apns = []
    for entry in reader.objects("apns") {
      let next = APNsConfiguration(entry, appID: appID)
      if apns.contains(where: { $0.environment == next.environment }) {
        entry.report("environment", "is \"\(next.environment.rawValue)\" a second time; one credential for each environment")
      } else {
        apns.append(next)
      }
    }
    fcm = reader.has("fcm") ? FCMConfiguration(reader.object("fcm"), appID: appID) : nil
    webpush = reader.has("webpush") ? WebPushConfiguration(reader.object("webpush")) : nil
  }
}

extension APNsConfiguration {
  fileprivate init(_ reader: ConfigurationReader, appID: String) {
    topic = reader.string("topic") ?? appID
    topics = reader.strings("topics") ?? []
    func check(_ key: String, _ verb: String, _ topic: String) {
      guard APNsHeader.apnsTopic.brokenRule(Array(topic.utf8)) != nil else { return }
      reader.report(key, "\(verb) \(SafeText.value(topic)): a topic is a bundle ID, with a push type's suffix or without")
    }
    check("topic", "is", topic)
    for topic in topics { check("topics", "has", topic) }
    environment = reader.choice("environment")
    let given = reader.endpoint("endpoint")
    let isSandbox = environment == .sandbox
    endpoint = given ?? Endpoint(host: isSandbox ? "api.sandbox.push.apple.com" : "api.push.apple.com", port: 443)
    broadcastEndpoint = reader.endpoint("broadcastEndpoint") ?? endpoint
    let appleChannels =
      isSandbox
      ? Endpoint(host: "api-manage-broadcast.sandbox.push.apple.com", port: 2195)
      : Endpoint(host: "api-manage-broadcast.push.apple.com", port: 2196)
    channelsEndpoint = reader.endpoint("channelsEndpoint") ?? given ?? appleChannels
    ca = reader.material("ca")
    proxy = reader.proxy()
    timeout = reader.number("timeout")
    if reader.has("certificate"), let identity = IdentityMaterial.read(reader, .inCredential) {
      for key in ["keyID", "teamID"] where reader.has(key) {
        reader.report(key, "belongs to token authentication; this credential has a certificate")
      }
      credential = .certificate(identity)
    } else {
      credential = .token(
        key: reader.requiredMaterial("key", "is missing: a .p8 key with keyID and teamID, or a certificate"),
        keyID: reader.identifier("keyID", of: "key"), teamID: reader.identifier("teamID", of: "team"))
    }
  }
}

extension FCMConfiguration {
  fileprivate init(_ reader: ConfigurationReader, appID: String) {
    package = reader.string("package") ?? appID
    serviceAccount = reader.requiredMaterial("serviceAccount", "is missing: the service account's JSON key file")
    messagesPerMinute = reader.number("messagesPerMinute")
    endpoint = reader.endpoint("endpoint")
    ca = reader.material("ca")
    proxy = reader.proxy()
  }
}

extension ConfigurationReader {
  /// An id from Apple: ten letters and digits.
  fileprivate func identifier(_ key: String, of what: String) -> String {
    let text = requiredString(key, for: "the ten-character id of the \(what)")
    if text.utf8.count != 10 || !text.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber) }) {
      report(key, "must be the \(what)'s id: ten letters and digits")
    }
    return text
  }

  /// The host and port of `https://host[:port]`. Other schemes are refused.
  fileprivate func endpoint(_ key: String) -> Endpoint? {
    guard let text = string(key) else { return nil }
    guard let url = URLComponents(string: text), url.scheme == "https", let host = url.host, !host.isEmpty,
      url.path.isEmpty || url.path == "/", url.query == nil, url.user == nil
    else {
      report(key, "must be https://host:port")
      return nil
    }
    guard let port = UInt16(exactly: url.port ?? 443), port > 0 else {
      report(key, "has a port out of range")
      return nil
    }
    return Endpoint(host: host.trimmingCharacters(in: ["[", "]"]), port: port)
  }
}

/// Reads a configuration in one pass and collects its errors.
struct ConfigurationReading {
  let overlay: EnvironmentOverlay
  let source: ConfigurationSource
  /// Contains placeholders if there are errors.
  let configuration: Configuration
  /// True if there is no file and no variable gives a value.
  let isNothingGiven: Bool

  /// - Parameters:
  ///   - file: the object in the configuration file; nil if all values come from the environment.
  ///   - broken: settings whose values in the file have syntax errors.
  init(_ file: ConfigurationValue?, path: String?, broken: Set<String> = [], _ environment: [String: String]) {
    let folder = path.map { URL(fileURLWithPath: $0).standardizedFileURL.deletingLastPathComponent().path }
    overlay = EnvironmentOverlay(file ?? .object([:]), environment)
    source = ConfigurationSource(
      directory: folder ?? FileManager.default.currentDirectoryPath, origins: overlay.origins, wrong: broken)
    isNothingGiven = file == nil && overlay.origins.isEmpty
    let known = SettingShape.configuration.known(overlay.value, source)
    var configuration = Configuration(ConfigurationReader(known, source: source), environment)
    configuration.takeTraces(from: environment, source)
    self.configuration = configuration
  }
}
