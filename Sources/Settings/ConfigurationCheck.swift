import Foundation
import Providers
import PushCore
import Reactor

/// One thing about a configuration that is wrong, or likely to be. Never holds a secret's value.
public struct ConfigurationFinding: Sendable, Equatable {
  /// The configuration can't be used with it; otherwise it is only likely to be a mistake.
  public var isError: Bool
  /// The file and the place in it, from 1; nil for what doesn't stand there.
  public var file: String?
  public var line: Int?
  public var column: Int?
  /// The setting's path; nil for what is wrong with the file as a whole.
  public var key: String?
  /// The environment's variable that the value came from.
  public var variable: String?
  public var problem: String
}

/// Finds all that is wrong with a configuration at once.
///
/// The loader ends at the first error. So each is corrected in memory (taken out, or filled in where it was missing), and the loader goes on, until
/// it finds no more. What it would only find because of a correction isn't reported.
public struct ConfigurationCheck {
  public private(set) var findings: [ConfigurationFinding] = []
  /// What can be used as it stands; nil where there are errors.
  public private(set) var configuration: Configuration?
  /// Each credential that can be used, by the setting that it stands at.
  private(set) var shelf = CredentialShelf()
  /// Warnings of certificates that have ended, or end within a month.
  public private(set) var certificates: [ConfigurationFinding] = []

  private let file: String?
  private var places = JSON5Places()
  /// The settings that were corrected, by name.
  private var corrected: Set<String> = []
  /// Where the value of a setting stands whose key is misspelled, by the setting's name.
  private var misspelled: [String: String] = [:]
  /// Errors after which something else must be wrong.
  private static let mostErrors = 200

  /// - Parameter path: nil when everything comes from the environment.
  public init(path: String?, environment: [String: String]) {
    file = path
    var value = ConfigurationValue.object([:])
    var directory = FileManager.default.currentDirectoryPath
    if let path {
      guard let read = read(path) else { return }
      value = read
      directory = URL(fileURLWithPath: path).standardizedFileURL.deletingLastPathComponent().path
    }
    let (laid, origins) = overlay(value, environment)
    if path == nil, origins.isEmpty, findings.isEmpty {
      say(Configuration.nothingGiven)
      return
    }
    value = laid
    for unknown in SettingShape.configuration.unknown(in: value) {
      let name = ConfigurationSource.name(unknown.path)
      report(unknown.error, origin: origins[name])
      value = correct(value, unknown)
      corrected.insert(name)
    }
    let source = ConfigurationSource(directory: directory, origins: origins)
    guard var loaded = load(value, source) else { return }
    var errors = shelf.load(loaded) + loaded.doorErrors(at: Int64(Date().timeIntervalSince1970))
    do throws(ConfigurationError) {
      try loaded.takeTraces(from: environment)
      _ = try loaded.traces?.tls()
    } catch { errors.append(error) }
    for error in errors where !isConsequence(error) {
      report(error, origin: error.variable ?? source.origin(ofName: error.key))
    }
    if !findings.contains(where: \.isError) { configuration = loaded }
    for warning in loaded.warnings where !warning.contains(Self.placeholder) {
      // Of what was filled in, nothing is said.
      if !corrected.contains(where: { warning.hasPrefix("\($0) ") }) { findings.append(finding(warning, source)) }
    }
    certificates = endings(of: loaded, at: Int64(Date().timeIntervalSince1970)).map { finding($0, source) }
  }

  /// - Parameter now: unix seconds.
  private func endings(of loaded: Configuration, at now: Int64) -> [String] {
    var ends: [(setting: String, notAfter: Int64)] = []
    for (place, _) in loaded.credentials {
      guard case .apns(let credential)? = shelf.credentials[place]?.value, let end = credential.notAfter else { continue }
      ends.append(("\(place.setting).certificate", end))
    }
    let doors = [try? loaded.gateway?.http?.loadCertificate(), try? loaded.gateway?.apns?.loadCertificate()]
    // One that has ended is an error there.
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
      let reading = JSON5Reader.readOn(text)
      places = reading.places
      corrected = reading.broken
      for fault in reading.faults { say("is not valid JSON5: \(fault.reason)", at: fault) }
      // Of what had to be guessed, nothing more is said.
      guard let value = reading.value, reading.isCertain else { return nil }
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

  /// Lays the environment over the file's values; variables that can't be used are left out.
  private mutating func overlay(_ value: ConfigurationValue, _ environment: [String: String]) -> (
    ConfigurationValue, [String: String]
  ) {
    var environment = environment
    while true {
      do throws(ConfigurationError) {
        let overlay = try EnvironmentOverlay(value, environment, SettingShape.configuration)
        for (variable, meant) in overlay.misspelled(environment) {
          findings.append(
            ConfigurationFinding(isError: false, variable: variable, problem: "isn't read: did you mean \(meant)?"))
        }
        return (overlay.value, overlay.origins)
      } catch {
        findings.append(ConfigurationFinding(isError: true, variable: error.key, problem: error.problem))
        guard environment.removeValue(forKey: error.key) != nil else { return (value, [:]) }
      }
    }
  }

  private mutating func load(_ value: ConfigurationValue, _ source: ConfigurationSource) -> Configuration? {
    var value = value
    for _ in 0..<Self.mostErrors {
      do throws(ConfigurationError) {
        return try Configuration(ConfigurationReader(value, source: source))
      } catch {
        if !isConsequence(error) { report(error, origin: error.variable ?? source.origin(ofName: error.key)) }
        guard let next = correct(value, error.key) else { return nil }
        value = next
      }
    }
    return nil
  }

  // MARK: findings

  /// Said of a setting that was corrected before, or of what holds nothing any more.
  private func isConsequence(_ error: ConfigurationError) -> Bool {
    corrected.contains(error.key) || corrected.contains(error.key + "File")
      || corrected.contains { error.key.hasPrefix($0 + ".") || error.key.hasPrefix($0 + "[") }
      || error.key == "apps" && corrected.contains { $0.hasPrefix("apps.") }
  }

  private mutating func report(_ error: ConfigurationError, origin: String?) {
    let place = origin == nil ? places.place(ofNearest: misspelled[error.key] ?? error.key) : nil
    findings.append(
      ConfigurationFinding(
        isError: true, file: origin == nil ? file : nil, line: place?.line, column: place?.column, key: error.key,
        variable: origin, problem: error.problem))
  }

  /// - Parameter sentence: that begins with the setting.
  private func finding(_ sentence: String, _ source: ConfigurationSource) -> ConfigurationFinding {
    let key = String(sentence.prefix { $0 != " " && $0 != ":" })
    let origin = source.origin(ofName: key)
    let place = origin == nil ? places.place(ofNearest: key) : nil
    return ConfigurationFinding(
      isError: false, file: origin == nil ? file : nil, line: place?.line, column: place?.column, variable: origin,
      problem: sentence)
  }

  // MARK: correcting

  private static let placeholder = "placeholder-of-config-check"
  /// Takes the place of what is missing, by the last word of its path; files that nobody opens.
  private static var placeholders: [String: ConfigurationValue] {
    [
      "broker": .string("amqp://localhost"), "keyID": .string("AAAAAAAAAA"), "teamID": .string("AAAAAAAAAA"),
      "key": .string(placeholder), "serviceAccount": .string(placeholder),
      "apns": .object(["certificate": .string(placeholder)]),
      "listen": .string("127.0.0.1:1"), "certificate": .string(placeholder), "clients": .string(placeholder),
    ]
  }

  /// The misspelled key's value goes to the key that was meant.
  private mutating func correct(_ value: ConfigurationValue, _ unknown: SettingShape.Unknown) -> ConfigurationValue {
    let there = value.value(at: unknown.path)
    let without = value.removing(unknown.path) ?? value
    guard let meant = unknown.meant, let there else { return without }
    let path = unknown.path.dropLast() + [meant]
    guard without.value(at: Array(path)) == nil else { return without }
    misspelled[ConfigurationSource.name(Array(path))] = ConfigurationSource.name(unknown.path)
    return without.replacing(path[...], by: there) ?? without
  }

  /// Without the setting, or with something in its place; nil where nothing helps.
  private mutating func correct(_ value: ConfigurationValue, _ key: String) -> ConfigurationValue? {
    defer { corrected.insert(key) }
    let found = value.paths.filter { [key, key + "File"].contains(ConfigurationSource.name($0)) }
    // Where a value and its file give the same setting, the file stays: it may be wrong as well.
    if let first = found.first { return value.removing(first) ?? value }
    // It is missing, or belongs to an object that is: by the name of what holds it.
    let holder = value.paths.filter { key.hasPrefix(ConfigurationSource.name($0) + ".") }.max { $0.count < $1.count } ?? []
    let last = String(key.split(separator: ".").last ?? "")
    if !corrected.contains(key + " filled"), let filling = Self.placeholders[last] {
      corrected.insert(key + " filled")
      let filled = value.replacing((holder + [last])[...], by: filling)
      let beside = holder + ["key"]
      guard last == "certificate", value.value(at: beside) == nil else { return filled }
      corrected.insert(ConfigurationSource.name(beside))
      return filled?.replacing(beside[...], by: filling)
    }
    guard !holder.isEmpty else { return nil }
    // Of a list the whole goes, and nothing is to be found missing because of that.
    let gone = holder.prefix { !$0.hasPrefix("[") }
    corrected.insert(ConfigurationSource.name(Array(gone)))
    return value.removing(holder)
  }
}

extension ConfigurationSource {
  func origin(ofName name: String) -> String? { origins[name] ?? origins[name + "File"] }
}

extension ConfigurationValue {
  /// The paths of everything in it.
  fileprivate var paths: [[String]] {
    switch self {
    case .object(let members):
      members.sorted { $0.key < $1.key }.flatMap { key, value in [[key]] + value.paths.map { [key] + $0 } }
    case .array(let elements):
      elements.enumerated().flatMap { index, value in [["[\(index)]"]] + value.paths.map { ["[\(index)]"] + $0 } }
    default: []
    }
  }

  fileprivate func value(at path: [String]) -> ConfigurationValue? {
    path.reduce(self) { value, key in
      guard key.hasPrefix("["), case .array(let elements)? = value, let place = Int(key.dropFirst().dropLast()) else {
        return value?[key]
      }
      return elements.indices.contains(place) ? elements[place] : nil
    }
  }

  /// Without what stands there; of a list, the whole list goes, as the others' places must stay.
  fileprivate func removing(_ path: [String]) -> ConfigurationValue? {
    guard let last = path.last else { return nil }
    if last.hasPrefix("[") { return removing(path.dropLast()) }
    guard
      var members = (path.count == 1 ? self : value(at: path.dropLast())).flatMap({ holder in
        if case .object(let members) = holder { members } else { nil }
      })
    else { return nil }
    members[last] = nil
    return replacing(path.dropLast()[...], by: .object(members))
  }
}
