import Foundation
import Providers
import PushCore
import Reactor

/// An error or a likely mistake in a configuration. Never contains a secret.
public struct ConfigurationFinding: Sendable, Equatable {
  /// True if the configuration is unusable; false for a likely mistake.
  public var isError: Bool
  /// The file and the position in it, from 1; nil if the problem isn't in the file.
  public var file: String?
  public var line: Int?
  public var column: Int?
  /// The setting's path; nil for a problem of the whole file.
  public var key: String?
  /// The environment variable that provided the value.
  public var variable: String?
  public var problem: String
}

/// Finds all errors of a configuration at once, including those of its credential files.
public struct ConfigurationCheck {
  public private(set) var findings: [ConfigurationFinding] = []
  /// The usable configuration; nil if there are errors.
  public private(set) var configuration: Configuration?
  private(set) var credentialStore = CredentialStore()
  /// Warnings about certificates that have ended or end within a month.
  public private(set) var certificates: [ConfigurationFinding] = []

  private let file: String?
  private var document = JSON5Reading()

  /// - Parameter path: nil if all values come from the environment.
  public init(path: String?, environment: [String: String]) {
    file = path
    var value: ConfigurationValue?
    if let path {
      value = read(path)
      if value == nil { return }
    }
    let reading = ConfigurationReading(value, path: path, broken: document.broken, environment)
    findings += reading.overlay.errors.map {
      ConfigurationFinding(isError: true, variable: $0.key, problem: $0.problem)
    }
    findings += reading.overlay.misspelled(environment).map {
      ConfigurationFinding(isError: false, variable: $0.variable, problem: "isn't read: did you mean \($0.meant)?")
    }
    if reading.isNothingGiven, findings.isEmpty {
      say(Configuration.nothingGiven)
      return
    }
    let (source, loaded) = (reading.source, reading.configuration)
    let now = Int64(Date().timeIntervalSince1970)
    for error in credentialStore.load(loaded) + loaded.doorErrors(at: now) + loaded.webhookErrors { source.report(error) }
    do throws(ConfigurationError) { _ = try loaded.traces?.tls() } catch { source.report(error) }
    findings += source.errors.map { error in
      finding(isError: true, at: error.key, error.variable, error.problem, key: error.key, source)
    }
    if !findings.contains(where: \.isError) { configuration = loaded }
    guard !loaded.apps.isEmpty else { return }
    for sentence in loaded.warnings where !source.wrong.contains(where: { sentence.hasPrefix("\($0) ") }) {
      findings.append(warning(sentence, source))
    }
    certificates = endings(of: loaded, at: now).map { warning($0, source) }
  }

  /// - Parameter now: Unix seconds.
  private func endings(of loaded: Configuration, at now: Int64) -> [String] {
    var ends: [(setting: String, notAfter: Int64)] = []
    for (place, _) in loaded.credentials {
      guard case .apns(let credential)? = credentialStore.credentials[place]?.value, let end = credential.notAfter else {
        continue
      }
      ends.append(("\(place.setting).certificate", end))
    }
    if let identity = try? loaded.brokerIdentity?.load(MaterialCache(), .broker) {
      ends.append(("brokerCertificate", identity.notAfter))
    }
    let doors = [try? loaded.gateway?.http?.loadCertificate(), try? loaded.gateway?.apns?.loadCertificate()]
    // Here an ended certificate is an error instead.
    ends += doors.compactMap(\.self).filter { $0.expiry.notAfter > now }.map { ($0.setting, $0.expiry.notAfter) }
    var seen: Set<String> = []
    return ends.filter { ExpiryWatch.mark(notAfter: $0.notAfter, at: now) != nil && seen.insert($0.setting).inserted }.map {
      let date = String(decoding: Timestamp.text($0.notAfter * 1_000).prefix(10), as: UTF8.self)
      return "\($0.setting) \($0.notAfter <= now ? "ended" : "ends") on \(date): renew it"
    }
  }

  // MARK: steps

  private mutating func read(_ path: String) -> ConfigurationValue? {
    do throws(SystemError) {
      let bytes = try FileContents.read(path, limit: 16 << 20)
      guard let text = String(validating: bytes, as: UTF8.self) else {
        say("is not UTF-8 text")
        return nil
      }
      document = JSON5Reader.readOn(text)
      for fault in document.faults { say("is not valid JSON5: \(fault.reason)", at: fault) }
      // After a guess, further findings could be wrong.
      guard let value = document.value, document.isCertain else { return nil }
      guard case .object = value else {
        say("must hold an object, not \(value.kind)")
        return nil
      }
      return value
    } catch {
      say("cannot be read (\(error.reason)); name a file, or give it with --config or PUSHFLEET_CONFIG")
      return nil
    }
  }

  private mutating func say(_ problem: String, at fault: JSON5Reader.Fault? = nil) {
    findings.append(
      ConfigurationFinding(isError: true, file: file, line: fault?.line, column: fault?.column, problem: problem))
  }

  /// - Parameter sentence: a sentence that begins with the setting's name.
  private func warning(_ sentence: String, _ source: ConfigurationSource) -> ConfigurationFinding {
    finding(isError: false, at: String(sentence.prefix { $0 != " " && $0 != ":" }), nil, sentence, source)
  }

  private func finding(
    isError: Bool, at setting: String, _ variable: String?, _ problem: String, key: String? = nil, _ source: ConfigurationSource
  ) -> ConfigurationFinding {
    let origin = variable ?? source.origin(ofName: setting)
    let place = origin == nil ? document.place(ofNearest: source.misspelled[setting] ?? setting) : nil
    return ConfigurationFinding(
      isError: isError, file: origin == nil ? file : nil, line: place?.line, column: place?.column, key: key,
      variable: origin, problem: problem)
  }
}

/// A credential that was loaded successfully and can be tried.
package struct CheckedCredential {
  /// The name in logs.
  package let name: String
  /// The app's own topic at APNs; nil for other platforms.
  package let topic: String?
  package let value: LoadedCredential.Value
}

extension ConfigurationCheck {
  /// Credentials of pushes to devices, in the configuration's order, without duplicates of credential and topic. One that several
  /// applications share has the name that it has in the first of them.
  /// - Parameter only: the application whose credentials are wanted; nil for all.
  package func credentials(of only: String?) -> [CheckedCredential] {
    guard let configuration else { return [] }
    var seen: Set<String> = []
    var wanted: Set<String> = []
    let all = configuration.apps.flatMap { app in
      app.sets.flatMap { sender, set -> [(key: String, credential: CheckedCredential)] in
        set.sources.compactMap { reach, source in
          let place = CredentialPlace(app: app.id, sender: sender, reach: reach)
          guard let loaded = credentialStore.credentials[place] else { return nil }
          var topic: String?
          switch reach {
          case .apns(let environment): topic = set.apns.first { $0.environment == environment }?.topic
          case .broadcasts: return nil
          case .fcm, .webpush: break
          }
          let key = "\(loaded.fingerprint) \(topic ?? "")"
          if only == nil || only == app.id { wanted.insert(key) }
          guard seen.insert(key).inserted else { return nil }
          return (key, CheckedCredential(name: place.name, topic: topic, value: loaded.value))
        }
      }
    }
    return all.filter { wanted.contains($0.key) }.map(\.credential)
  }
}
