import AMQP
import Broker
import DeviceRegistry
import Foundation
import Logging
import PushCore
import Reactor

extension Configuration {
  /// Reads and checks the configuration file; `environment` overrides it value by value.
  ///
  /// - Parameter path: nil when everything comes from the environment.
  public static func load(path: String?, environment: [String: String]) throws(ConfigurationError) -> Configuration {
    var file = ConfigurationValue.object([:])
    var directory = FileManager.default.currentDirectoryPath
    if let path {
      let text: [UInt8]
      do throws(SystemError) { text = try FileContents.read(path, limit: 16 << 20) } catch {
        throw ConfigurationError(
          key: Shown.path(path), problem: "cannot be read (\(error.reason)); name a file with --config or PUSHFLEET_CONFIG")
      }
      file = try .parse(text, name: path)
      guard case .object = file else { throw ConfigurationError(key: path, problem: "must hold an object, not \(file.kind)") }
      directory = URL(fileURLWithPath: path).standardizedFileURL.deletingLastPathComponent().path
    }
    let overlay = try EnvironmentOverlay(file, environment, SettingShape.configuration)
    try SettingShape.configuration.refuseUnknown(in: overlay.value)
    if path == nil, overlay.origins.isEmpty {
      throw ConfigurationError(key: "broker", problem: "is missing: \(nothingGiven)")
    }
    let source = ConfigurationSource(directory: directory, origins: overlay.origins)
    var configuration = try Configuration(ConfigurationReader(overlay.value, source: source))
    try configuration.takeTraces(from: environment)
    return configuration
  }

  static let nothingGiven =
    "name a configuration file with --config or PUSHFLEET_CONFIG, or give every value by the environment"

  /// - Parameter reader: of the whole configuration.
  init(_ reader: ConfigurationReader) throws(ConfigurationError) {
    guard let texts = try reader.strings("broker"), !texts.isEmpty else {
      throw reader.error("broker", "is missing: an amqp:// or amqps:// address, or a list of them")
    }
    var brokers: [BrokerURI] = []
    for text in texts {
      do {
        brokers.append(try BrokerURI(parsing: text))
      } catch {
        throw reader.error("broker", "is not an AMQP address: \(error)")
      }
    }
    self.brokers = brokers
    for key in ["ca", "caFile"] {
      for other in ["brokerCA", "brokerCAFile"] { try reader.refuseBoth(key, other) }
    }
    let ca = try reader.material("ca")
    brokerCA = if let ca { ca } else { try reader.material("brokerCA") }
    if let text = try reader.string("registry") {
      let location = Self.located(text, in: reader.source)
      do throws(RegistryError) { _ = try RegistryLocation(parsing: location) } catch {
        throw reader.error("registry", "cannot be used: \(error)")
      }
      registry = location
    }
    registryStaleAfter = try Self.staleAfter(reader)
    results =
      ResultsSetting(rawValue: try reader.choice("results", of: ResultsSetting.allCases.map(\.rawValue)) ?? "none") ?? .none
    deadLetters = []
    for name in try reader.strings("deadLetters") ?? [] {
      let choices = PushError.withOptionalLetter.map(\.rawValue)
      guard choices.contains(name), let error = PushError(rawValue: name) else {
        throw reader.error(
          "deadLetters",
          "has \(Shown.value(name)): expected \(choices.joined(separator: ", "))\(Spelling.suggestion(for: name, among: choices))"
        )
      }
      deadLetters.insert(error)
    }
    receipts = try reader.flag("receipts") ?? false
    prefix = try reader.string("prefix") ?? "push"
    guard !prefix.isEmpty, prefix.utf8.count <= 64, prefix.utf8.allSatisfy(Self.isNameByte) else {
      throw reader.error("prefix", "must be 1 to 64 letters, digits, '.', '_' or '-'")
    }
    prefetch = try reader.integer("prefetch", in: 1...10_000) ?? 1_000
    shards = try reader.integer("shards", in: 1...64) ?? 1
    drainTimeout = try reader.integer("drainTimeout", in: 0...3_600) ?? 25
    log = LogLevel(rawValue: try reader.choice("log", of: LogLevel.allCases.map(\.rawValue)) ?? "info") ?? .info
    logFormat = try reader.choice("logFormat", of: LogFormat.allCases.map(\.rawValue)).flatMap(LogFormat.init)
    metrics = try reader.figures("metrics")
    trace = try TraceSettings.read(reader.object("trace"))
    traces = try OTLPSettings.read(reader)
    limits = try RequestLimits(reader.object("limits"))
    registryLimits = try RegistryLimits(reader.object("registryLimits"))
    retry = try RetrySettings(reader.object("retry"))
    fanOut = try FanOutSettings(reader.object("fanOut"))
    breaker = try BreakerSettings(reader.object("breaker"))
    replyTo = try Self.replyQueues(reader, Topology(prefix: prefix, ladder: retry.steps))
    richPages = try RichPageSettings.read(reader.object("richPages"))
    gateway = reader.has("gateway") ? try GatewaySettings(reader.object("gateway")) : nil
    apps = try Self.apps(reader)
    for app in apps {
      let longest = topology.binaryFeedbackQueue(app.id)
      guard longest.utf8.count > Self.longestName else { continue }
      throw reader.source.error(
        ["apps", app.id],
        "is too long beside the prefix: \(longest) has \(longest.utf8.count) bytes, a queue's name at most \(Self.longestName)")
    }
    valueFiles = reader.source.files.paths
  }

  /// A registry's file is relative to the configuration file, as every path is.
  private static func located(_ registry: String, in source: ConfigurationSource) -> String {
    let scheme = "sqlite:"
    guard registry.hasPrefix(scheme), !registry.hasPrefix(scheme + "/"), registry.count > scheme.count,
      registry != "sqlite::memory:"
    else { return registry }
    return scheme + source.absolute(String(registry.dropFirst(scheme.count)))
  }

  private static func staleAfter(_ reader: ConfigurationReader) throws(ConfigurationError) -> Int64? {
    guard let text = try reader.string("registryStaleAfter") else { return nil }
    guard let last = text.last, let factor: Int64 = ["s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000][last],
      let count = Int64(text.dropLast()), count > 0, count <= Self.longestStale / factor
    else {
      throw reader.error(
        "registryStaleAfter", "is \(Shown.value(text)): a time is a number with s, m, h or d, from 1s to 3650d, such as 270d")
    }
    return count * factor
  }

  /// Ten years.
  private static let longestStale: Int64 = 3_650 * 86_400_000

  private static func replyQueues(_ reader: ConfigurationReader, _ topology: Topology) throws(ConfigurationError) -> [String]? {
    guard let queues = try reader.strings("replyTo") else { return nil }
    for queue in queues {
      guard (1...longestName).contains(queue.utf8.count), queue.unicodeScalars.allSatisfy({ $0.value >= 0x20 }) else {
        throw reader.error("replyTo", "has \(Shown.value(queue)): a queue's name is 1 to 255 bytes without control characters")
      }
      guard !topology.isOwn(queue: queue) else {
        throw reader.error("replyTo", "has \(Shown.value(queue)), a queue of the fleet's own: no result may go there")
      }
    }
    return queues
  }

  private static func apps(_ reader: ConfigurationReader) throws(ConfigurationError) -> [AppConfiguration] {
    var apps: [AppConfiguration] = []
    for (id, entry) in try reader.entries("apps") {
      guard !id.isEmpty, id.utf8.count <= 200, id.utf8.allSatisfy(isNameByte) else {
        throw reader.source.error(
          ["apps", id], "is no application id: up to 200 letters, digits, '.', '_' or '-'")
      }
      apps.append(try AppConfiguration(id: id, entry))
    }
    guard !apps.isEmpty else { throw reader.error("apps", "is empty: a worker needs at least one app") }
    return apps
  }

  /// Of a queue, in bytes.
  private static let longestName = 255

  private static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
      UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
      true
    default: false
    }
  }
}

extension RequestLimits {
  /// All in bytes; what is absent keeps GCM's value (GS-004, GS-005).
  fileprivate init(_ reader: ConfigurationReader) throws(ConfigurationError) {
    self.init()
    if let body = try reader.integer("body", in: 1_024...(4 << 20)) { json.bytes = body }
    if let notification = try reader.integer("notification", in: 1...65_536) { notificationBytes = notification }
    if let data = try reader.integer("data", in: 1...65_536) { dataBytes = data }
    if let topicData = try reader.integer("topicData", in: 1...65_536) { topicDataBytes = topicData }
  }
}

extension RegistryLimits {
  /// What is absent keeps GCM's and FCM's value.
  fileprivate init(_ reader: ConfigurationReader) throws(ConfigurationError) {
    self.init()
    groupMembers = try reader.integer("groupMembers", in: 1...1_000_000) ?? groupMembers
    topicsPerDevice = try reader.integer("topicsPerDevice", in: 1...1_000_000) ?? topicsPerDevice
    devicesPerUser = try reader.integer("devicesPerUser", in: 1...1_000_000) ?? devicesPerUser
    batch = try reader.integer("batch", in: 1...10_000) ?? batch
  }
}

extension FanOutSettings {
  fileprivate init(_ reader: ConfigurationReader) throws(ConfigurationError) {
    pageSize = try reader.integer("pageSize", in: 1...5_000) ?? 1_000
    prefetch = try reader.integer("prefetch", in: 1...64) ?? 4
  }
}

extension BreakerSettings {
  fileprivate init(_ reader: ConfigurationReader) throws(ConfigurationError) {
    percent = try reader.integer("percent", in: 1...100) ?? 50
    sample = try reader.integer("sample", in: 1...1_000_000) ?? 200
  }
}

extension RetrySettings {
  static let defaultSteps = ["1s", "10s", "1m", "5m", "15m", "1h"]

  fileprivate init(_ reader: ConfigurationReader) throws(ConfigurationError) {
    attempts = try reader.integer("attempts", in: 1...100) ?? 10
    var steps: [RetryStep] = []
    for text in try reader.strings("steps") ?? Self.defaultSteps {
      guard let milliseconds = Self.milliseconds(text) else {
        throw reader.error("steps", "has \(Shown.value(text)): a step is a number with ms, s, m or h, from 100ms to 24h")
      }
      guard milliseconds > (steps.last?.delay ?? 0) else {
        throw reader.error("steps", "must grow: \(Shown.value(text)) is no longer than the step before it")
      }
      steps.append(RetryStep(name: text, delay: milliseconds))
    }
    guard !steps.isEmpty else { throw reader.error("steps", "is empty: a retry needs somewhere to wait") }
    self.steps = steps
  }

  private static func milliseconds(_ text: String) -> Int64? {
    for (suffix, factor) in [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)] where text.hasSuffix(suffix) {
      guard let count = Int(text.dropLast(suffix.count)), count > 0, count <= 86_400_000 / factor, count * factor >= 100 else {
        return nil
      }
      return Int64(count * factor)
    }
    return nil
  }
}

extension AppConfiguration {
  fileprivate init(id: String, _ reader: ConfigurationReader) throws(ConfigurationError) {
    self.id = id
    producers = try reader.strings("producers")
    if let producers {
      guard !producers.isEmpty else {
        throw reader.error("producers", "is empty: name those who may publish for the app, or leave it out for everybody")
      }
      guard producers.allSatisfy({ (1...255).contains($0.utf8.count) }) else {
        throw reader.error("producers", "must be names of the broker's users, 1 to 255 bytes each")
      }
    }
    defaultPriority = Priority(rawValue: try reader.choice("defaultPriority", of: ["normal", "high"]) ?? "normal") ?? .normal
    isUPMC = try reader.flag("upmc") ?? false
    countsBadges = try reader.flag("countBadges") ?? false
    unknownOutcome =
      try reader.choice("unknownOutcomes", of: UnknownOutcome.allCases.map(\.rawValue)).flatMap(UnknownOutcome.init) ?? .retry
    ignoresUnknownNames = try reader.choice("unknownKeys", of: ["refuse", "ignore"]) == "ignore"
    credentials = try CredentialSet(reader, appID: id)
    var senders: [String: CredentialSet] = [:]
    if reader.has("senders") {
      for (sender, entry) in try reader.entries("senders") {
        let set = try CredentialSet(entry, appID: id)
        guard !set.apns.isEmpty || set.fcm != nil else {
          throw entry.error("apns", "is missing: a sender needs apns, fcm or both")
        }
        senders[sender] = set.completed(by: credentials)
      }
      guard senders.count <= Self.mostSenders else {
        throw reader.error("senders", "has \(senders.count) entries; an application has at most \(Self.mostSenders)")
      }
    }
    self.senders = senders
    guard !credentials.apns.isEmpty || credentials.fcm != nil || !senders.isEmpty else {
      throw reader.error("apns", "is missing: an app needs apns, fcm or both")
    }
  }

  /// GS-084.
  private static let mostSenders = 100
}

extension CredentialSet {
  fileprivate init(_ reader: ConfigurationReader, appID: String) throws(ConfigurationError) {
    apns = []
    for entry in try reader.objects("apns") {
      let next = try APNsConfiguration(entry, appID: appID)
      guard !apns.contains(where: { $0.environment == next.environment }) else {
        throw entry.error(
          "environment", "is \"\(next.environment.rawValue)\" a second time; one credential for each environment")
      }
      apns.append(next)
    }
    fcm = reader.has("fcm") ? try FCMConfiguration(reader.object("fcm"), appID: appID) : nil
  }
}

extension APNsConfiguration {
  fileprivate init(_ reader: ConfigurationReader, appID: String) throws(ConfigurationError) {
    topic = try reader.string("topic") ?? appID
    topics = try reader.strings("topics") ?? []
    let form = "a topic is a bundle ID, with a push type's suffix or without"
    if APNsHeader.apnsTopic.brokenRule(Array(topic.utf8)) != nil {
      throw reader.error("topic", "is \(Shown.value(topic)): \(form)")
    }
    for topic in topics where APNsHeader.apnsTopic.brokenRule(Array(topic.utf8)) != nil {
      throw reader.error("topics", "has \(Shown.value(topic)): \(form)")
    }
    environment =
      Environment(rawValue: try reader.choice("environment", of: Environment.allCases.map(\.rawValue)) ?? "production")
      ?? .production
    let apple = environment == .production ? "api.push.apple.com" : "api.sandbox.push.apple.com"
    let endpoint = try reader.endpoint()
    (host, port) = endpoint ?? (apple, 443)
    (broadcastHost, broadcastPort) = try reader.endpoint("broadcastEndpoint") ?? (host, port)
    let appleChannels =
      environment == .production
      ? ("api-manage-broadcast.push.apple.com", 2196) : ("api-manage-broadcast.sandbox.push.apple.com", 2195)
    (channelsHost, channelsPort) = try reader.endpoint("channelsEndpoint") ?? endpoint ?? appleChannels
    ca = try reader.material("ca")
    timeout = try reader.integer("timeout", in: 1...300) ?? 30
    if let certificate = try reader.material("certificate") {
      for key in ["keyID", "teamID"] where reader.has(key) {
        throw reader.error(key, "belongs to token authentication; this credential has a certificate")
      }
      credential = .certificate(
        certificate, key: try reader.material("key"), passphrase: try reader.secret("passphrase"))
    } else {
      guard let key = try reader.material("key") else {
        throw reader.error("key", "is missing: a .p8 key with keyID and teamID, or a certificate")
      }
      credential = .token(
        key: key, keyID: try reader.identifier("keyID", of: "key"), teamID: try reader.identifier("teamID", of: "team"))
    }
  }
}

extension FCMConfiguration {
  fileprivate init(_ reader: ConfigurationReader, appID: String) throws(ConfigurationError) {
    package = try reader.string("package") ?? appID
    guard let account = try reader.material("serviceAccount") else {
      throw reader.error("serviceAccount", "is missing: the service account's JSON key file")
    }
    serviceAccount = account
    messagesPerMinute = try reader.integer("messagesPerMinute", in: 1...1_000_000_000) ?? 600_000
    let endpoint = try reader.endpoint()
    isEndpointGiven = endpoint != nil
    (host, port) = endpoint ?? ("fcm.googleapis.com", 443)
    ca = try reader.material("ca")
  }
}

extension ConfigurationReader {
  /// As Apple gives them out: ten letters and digits.
  fileprivate func identifier(_ key: String, of what: String) throws(ConfigurationError) -> String {
    let text = try requiredString(key, for: "the ten-character id of the \(what)")
    guard text.utf8.count == 10, text.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber) }) else {
      throw error(key, "must be the \(what)'s id: ten letters and digits")
    }
    return text
  }

  /// `https://host[:port]`; nothing but https is spoken.
  fileprivate func endpoint(_ key: String = "endpoint") throws(ConfigurationError) -> (host: String, port: Int)? {
    guard let text = try string(key) else { return nil }
    guard let url = URLComponents(string: text), url.scheme == "https", let host = url.host, !host.isEmpty,
      url.path.isEmpty || url.path == "/", url.query == nil, url.user == nil
    else { throw error(key, "must be https://host:port") }
    let port = url.port ?? 443
    guard (1...65_535).contains(port) else { throw error(key, "has a port out of range") }
    return (host.trimmingCharacters(in: ["[", "]"]), port)
  }
}
