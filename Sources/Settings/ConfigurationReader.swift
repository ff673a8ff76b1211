import Foundation
import Providers
import PushCore
import Reactor

/// Reads the members of one object of the configuration. Reports each wrong value to the source, and returns the default or a
/// placeholder instead.
struct ConfigurationReader {
  let path: [String]
  let source: ConfigurationSource
  private let value: ConfigurationValue
  private let fields: SettingShape.Fields

  /// - Parameter path: empty for the whole configuration.
  init(
    _ value: ConfigurationValue?, path: [String] = [], _ fields: SettingShape.Fields = SettingShape.configuration,
    source: ConfigurationSource
  ) {
    self.path = path
    self.source = source
    self.fields = fields
    self.value = if case .object? = value { value ?? .null } else { .object([:]) }
    switch value {
    case .object?, .null?, nil: break
    case .some(let other): source.report(path, "must be an object, not \(other.kind)")
    }
  }

  func has(_ key: String) -> Bool { value[key] != nil || value[key + "File"] != nil }

  /// The value, or the default if the value is missing or wrong.
  func string(_ key: String) -> String? {
    let given = text(key)
    switch shape(of: key) {
    case .choice(let choices, let standard):
      guard let given, !choices.contains(given) else { return given ?? standard }
      let known = choices.map { "\"\($0)\"" }.joined(separator: ", ")
      report(key, "must be one of \(known)\(Spelling.suggestion(for: given, among: choices))")
      return standard
    case .text(_, let standard), .texts(_, let standard): return given ?? standard
    default: return given
    }
  }

  private func text(_ key: String) -> String? {
    refuseBoth(key, key + "File")
    let file = fileName(key).flatMap { source.text(of: $0, path + [key + "File"]) }
    let text = text(value(of: key), key, "a string")
    return file ?? text
  }

  /// - Parameter kind: the expected value, for the error.
  private func text(_ value: ConfigurationValue?, _ key: String, _ kind: String) -> String? {
    switch value {
    case .string(let text): return text
    case nil: break
    case .some(let other): report(key, "must be \(kind), not \(other.kind)")
    }
    return nil
  }

  /// - Returns: an empty text if the value is missing.
  func requiredString(_ key: String, for purpose: String) -> String {
    let text = string(key) ?? ""
    if text.isEmpty { report(key, "is missing: \(purpose)") }
    return text
  }

  /// - Precondition: the choice has a default.
  func choice<Choice: RawRepresentable<String>>(_ key: String) -> Choice {
    guard let choice = string(key).flatMap(Choice.init) else { preconditionFailure("\(key) has no such default") }
    return choice
  }

  /// A key, certificate or authority: the path of its file (relative to the configuration file), or its text.
  func material(_ key: String) -> Material? {
    material(key, "the path of a file, or its text") { Material($0, in: source) }
  }

  /// - Parameter problem: the error if the value is missing.
  func requiredMaterial(_ key: String, _ problem: String) -> Material {
    if let material = material(key) { return material }
    report(key, problem)
    return .missing
  }

  /// A passphrase: its text, or its file. The file is read with the credential, so a bad file affects no other credential.
  func secret(_ key: String) -> Material? { material(key, "a string", Material.text) }

  /// Materials in a list, or in one string with commas or spaces between the paths of files.
  func materials(_ key: String) -> [Material] {
    if let texts = elements(key, "the path of a file, or its text") { return texts.map { Material($0, in: source) } }
    if case .string(let text)? = value(of: key), !Material.isText(text), value[key + "File"] == nil {
      return text.split { $0 == "," || $0.isWhitespace }.map { Material(String($0), in: source) }
    }
    return material(key).map { [$0] } ?? []
  }

  private func material(_ key: String, _ kind: String, _ make: (String) -> Material) -> Material? {
    refuseBoth(key, key + "File")
    let file = fileName(key).map { Material.file(source.absolute($0)) }
    let text = text(value(of: key), key, kind)
    return file ?? text.map(make)
  }

  /// The path in the key with the ending `File`.
  private func fileName(_ key: String) -> String? { text(value[key + "File"], key + "File", "the path of a file") }

  func number(_ key: String) -> Int {
    guard case .number(let range, let standard, _) = shape(of: key) else { preconditionFailure("\(key) is no number") }
    switch value(of: key) {
    case nil: return standard
    case .integer(let number) where range.contains(number): return number
    case .string(let text) where source.origin(of: path + [key]) != nil && Int(text).map(range.contains) == true:
      return Int(text) ?? standard
    case .some: report(key, "must be a whole number from \(range.lowerBound) to \(range.upperBound)")
    }
    return standard
  }

  func flag(_ key: String) -> Bool {
    guard case .flag(let standard) = shape(of: key) else { preconditionFailure("\(key) is no flag") }
    switch value(of: key) {
    case nil: return standard
    case .bool(let flag): return flag
    case .string("true") where source.origin(of: path + [key]) != nil: return true
    case .string("false") where source.origin(of: path + [key]) != nil: return false
    case .some: report(key, "must be true or false")
    }
    return standard
  }

  /// Milliseconds; nil if there is no value, or for `none`.
  func time(_ key: String, _ form: String = "a number") -> Int64? {
    guard case .time(let days, let example, let isDefault, let orNone) = shape(of: key) else {
      preconditionFailure("\(key) is no time")
    }
    guard let text = string(key) ?? (isDefault ? example : nil), !(orNone && text == "none") else { return nil }
    let time = Self.milliseconds(text, units: ["s", "m", "h", "d"], in: 1_000...days * 86_400_000)
    if time == nil {
      let words = "\(form) with s, m, h or d, from 1s to \(days)d, such as \(example)\(orNone ? "; or \"none\"" : "")"
      report(key, "is \(SafeText.value(text)): \(words)")
    }
    return time
  }

  static func milliseconds(_ text: String, units: Set<String>, in range: ClosedRange<Int64>) -> Int64? {
    let unit = String(text.drop { !$0.isLetter })
    let factors: [String: Int64] = ["ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000]
    guard units.contains(unit), let factor = factors[unit], let count = Int64(text.dropLast(unit.count)),
      count > 0, count <= range.upperBound / factor, range.contains(count * factor)
    else { return nil }
    return count * factor
  }

  /// A list of strings, or one string with commas or spaces between the entries.
  func strings(_ key: String) -> [String]? {
    let list = elements(key, "a string") ?? string(key)?.split { $0 == "," || $0.isWhitespace }.map(String.init)
    guard case .words(let choices) = shape(of: key), let wrong = list?.first(where: { !choices.contains($0) }) else {
      return list
    }
    let known = choices.joined(separator: ", ")
    report(key, "has \(SafeText.value(wrong)): expected \(known)\(Spelling.suggestion(for: wrong, among: choices))")
    return list
  }

  /// The strings of a list; nil if the value is no list.
  /// - Parameter kind: says what each must be.
  private func elements(_ key: String, _ kind: String) -> [String]? {
    guard case .array(let elements)? = value(of: key) else { return nil }
    refuseBoth(key, key + "File")
    return elements.enumerated().compactMap { index, element in
      if case .string(let text) = element { return text }
      report("\(key)[\(index)]", "must be \(kind), not \(element.kind)")
      return nil
    }
  }

  func object(_ key: String) -> ConfigurationReader {
    ConfigurationReader(value[key], path: path + [key], inner(key), source: source)
  }

  /// An object, or a list of objects; empty if the key is missing.
  func objects(_ key: String) -> [ConfigurationReader] {
    guard case .array(let elements)? = value[key] else { return has(key) ? [object(key)] : [] }
    return elements.enumerated().map { index, element in
      ConfigurationReader(element, path: path + [key, "[\(index)]"], inner(key), source: source)
    }
  }

  /// The entries of an object whose keys are names, sorted by name.
  func entries(_ key: String) -> [(name: String, reader: ConfigurationReader)] {
    guard case .object(let members) = object(key).value else { return [] }
    return members.sorted { $0.key < $1.key }.map { name, entry in
      (name, ConfigurationReader(entry, path: path + [key, name], inner(key), source: source))
    }
  }

  /// Reports an error if both keys have a value, because both name the same setting.
  func refuseBoth(_ one: String, _ other: String) {
    if value[one] != nil, value[other] != nil { report(one, "and \(other) give the same setting: keep one of them") }
  }

  func report(_ key: String, _ problem: String) { source.report(path + [key], problem) }

  /// Traps if the setting is missing in the table, because its key would be refused as unknown.
  private func shape(of key: String) -> SettingShape {
    guard let shape = fields[key] else { preconditionFailure("\(key) is missing in the table of settings") }
    return shape
  }

  private func value(of key: String) -> ConfigurationValue? {
    assert(fields[key] != nil, "\(key) is missing in the table of settings")
    return value[key]
  }

  private func inner(_ key: String) -> SettingShape.Fields { shape(of: key).inner ?? [:] }
}

/// The origins of values (folder, environment variables, files) and the errors of all values.
final class ConfigurationSource {
  /// The folder of the configuration file. Relative paths start here.
  let directory: String
  /// The environment variable of a value, by the setting's name.
  let origins: [String: String]
  /// The files that contain values. They are watched.
  private(set) var files: [String] = []
  private(set) var errors: [ConfigurationError] = []
  /// The proxy of credentials that name none.
  var proxy = ProxyChoice.direct
  /// The name in the file of a setting whose key is misspelled there, by the setting's correct name.
  var misspelled: [String: String] = [:]
  /// The settings with an error. Further errors of such a setting, or of a setting inside or around it, are not reported.
  private(set) var wrong: Set<String>

  init(directory: String, origins: [String: String] = [:], wrong: Set<String> = []) {
    (self.directory, self.origins, self.wrong) = (directory, origins, wrong)
  }

  func report(_ path: [String], _ problem: String) {
    report(ConfigurationError(key: Self.name(path), variable: origin(of: path), problem: problem))
  }

  func report(_ error: ConfigurationError) {
    let key = error.key
    let isConsequence =
      wrong.contains(key) || wrong.contains(key + "File") || key == "apps" && wrong.contains { $0.hasPrefix("apps.") }
      || wrong.contains { key.hasPrefix($0 + ".") || key.hasPrefix($0 + "[") || $0.hasPrefix(key + "[") }
    if isConsequence { return }
    wrong.insert(key)
    errors.append(error)
  }

  func absolute(_ path: String) -> String {
    path.hasPrefix("/") ? path : directory + "/" + path
  }

  /// The value that a file contains; nil after an error.
  func text(of file: String, _ setting: [String]) -> String? {
    files.append(absolute(file))
    do throws(SystemError) {
      if let text = FileText.value(try FileContents.read(absolute(file))) { return text }
      report(setting, FileText.notText(file))
    } catch {
      report(setting, FileText.problem(absolute(file), error))
    }
    return nil
  }

  /// The environment variable of the value or of an object that contains it.
  func origin(of path: [String]) -> String? {
    path.indices.reversed().lazy.compactMap { self.origins[Self.name(Array(path[...$0]))] }.first
  }

  func origin(ofName name: String) -> String? { origins[name] ?? origins[name + "File"] }

  static func name(_ path: [String]) -> String {
    guard !path.isEmpty else { return "the configuration" }
    let shown = path.map(SafeText.key)
    return shown.dropFirst().reduce(shown[0]) { $1.hasPrefix("[") ? $0 + $1 : "\($0).\($1)" }
  }
}
