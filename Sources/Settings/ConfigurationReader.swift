import Foundation
import PushCore
import Reactor

/// Reads one object of the configuration, key by key. What is unknown has been refused, and what the environment gives has been
/// laid over it, before.
struct ConfigurationReader {
  let path: [String]
  let source: ConfigurationSource
  private let value: ConfigurationValue
  private let fields: SettingShape.Fields

  /// The whole configuration.
  init(_ value: ConfigurationValue, source: ConfigurationSource) throws(ConfigurationError) {
    try self.init(value, path: [], SettingShape.configuration, source)
  }

  private init(
    _ value: ConfigurationValue?, path: [String], _ fields: SettingShape.Fields, _ source: ConfigurationSource
  ) throws(ConfigurationError) {
    self.path = path
    self.source = source
    self.fields = fields
    switch value {
    case .object?: self.value = value ?? .null
    case nil, .null: self.value = .object([:])
    case .some(let other): throw source.error(path, "must be an object, not \(other.kind)")
    }
  }

  func has(_ key: String) -> Bool { value[key] != nil || value[key + "File"] != nil }

  func string(_ key: String) throws(ConfigurationError) -> String? {
    try refuseBoth(key, key + "File")
    switch value(of: key) {
    case .string(let text): return text
    case nil: break
    case .some(let other): throw error(key, "must be a string, not \(other.kind)")
    }
    return try fileName(key).map { (file) throws(ConfigurationError) in
      try source.text(of: file, path + [key + "File"])
    }
  }

  func requiredString(_ key: String, for purpose: String) throws(ConfigurationError) -> String {
    guard let text = try string(key), !text.isEmpty else { throw error(key, "is missing: \(purpose)") }
    return text
  }

  /// A key, certificate or authority: the path of its file, relative to the configuration file, or its text.
  func material(_ key: String) throws(ConfigurationError) -> Material? {
    try refuseBoth(key, key + "File")
    switch value(of: key) {
    case .string(let text): return Material(text, in: source)
    case nil: break
    case .some(let other): throw error(key, "must be the path of a file, or its text, not \(other.kind)")
    }
    return try fileName(key).map { .file(source.absolute($0)) }
  }

  /// A passphrase: its text, or the file that it stands in. Read with the credential, so that a bad file costs no other.
  func secret(_ key: String) throws(ConfigurationError) -> Material? {
    try refuseBoth(key, key + "File")
    switch value(of: key) {
    case .string(let text): return .text(text)
    case nil: return try fileName(key).map { .file(source.absolute($0)) }
    case .some(let other): throw error(key, "must be a string, not \(other.kind)")
    }
  }

  /// What the key with `File` at its end names.
  private func fileName(_ key: String) throws(ConfigurationError) -> String? {
    switch value[key + "File"] {
    case .string(let file): return file
    case nil: return nil
    case .some(let other): throw error(key + "File", "must be the path of a file, not \(other.kind)")
    }
  }

  func integer(_ key: String, in range: ClosedRange<Int>) throws(ConfigurationError) -> Int? {
    var found = value(of: key)
    if case .string(let text)? = found, source.origin(of: path + [key]) != nil, let number = Int(text) {
      found = .integer(number)
    }
    switch found {
    case nil: return nil
    case .integer(let number) where range.contains(number): return number
    case .some: throw error(key, "must be a whole number from \(range.lowerBound) to \(range.upperBound)")
    }
  }

  func flag(_ key: String) throws(ConfigurationError) -> Bool? {
    switch value(of: key) {
    case nil: return nil
    case .bool(let flag): return flag
    case .string("true") where source.origin(of: path + [key]) != nil: return true
    case .string("false") where source.origin(of: path + [key]) != nil: return false
    case .some: throw error(key, "must be true or false")
    }
  }

  func choice(_ key: String, of choices: [String]) throws(ConfigurationError) -> String? {
    guard let text = try string(key) else { return nil }
    guard choices.contains(text) else {
      let known = choices.map { "\"\($0)\"" }.joined(separator: ", ")
      throw error(key, "must be one of \(known)\(Spelling.suggestion(for: text, among: choices))")
    }
    return text
  }

  /// A list of strings, or one with commas or spaces between them.
  func strings(_ key: String) throws(ConfigurationError) -> [String]? {
    guard case .array(let elements)? = value(of: key) else {
      return try string(key).map { $0.split { $0 == "," || $0.isWhitespace }.map(String.init) }
    }
    try refuseBoth(key, key + "File")
    var list: [String] = []
    for (index, element) in elements.enumerated() {
      guard case .string(let text) = element else { throw error("\(key)[\(index)]", "must be a string, not \(element.kind)") }
      list.append(text)
    }
    return list
  }

  func object(_ key: String) throws(ConfigurationError) -> ConfigurationReader {
    try ConfigurationReader(value[key], path: path + [key], inner(key), source)
  }

  /// An object, or a list of them; none when the key is absent.
  func objects(_ key: String) throws(ConfigurationError) -> [ConfigurationReader] {
    guard case .array(let elements)? = value[key] else { return has(key) ? [try object(key)] : [] }
    var readers: [ConfigurationReader] = []
    for (index, element) in elements.enumerated() {
      readers.append(try ConfigurationReader(element, path: path + [key, "[\(index)]"], inner(key), source))
    }
    return readers
  }

  /// The entries of an object whose keys are names, in their order.
  func entries(_ key: String) throws(ConfigurationError) -> [(name: String, reader: ConfigurationReader)] {
    let whole = try object(key)
    guard case .object(let members) = whole.value else { return [] }
    var entries: [(name: String, reader: ConfigurationReader)] = []
    for (name, entry) in members.sorted(by: { $0.key < $1.key }) {
      entries.append((name, try ConfigurationReader(entry, path: path + [key, name], inner(key), source)))
    }
    return entries
  }

  /// Two ways of giving the same setting: only one of them is believed.
  func refuseBoth(_ one: String, _ other: String) throws(ConfigurationError) {
    guard value[one] != nil, value[other] != nil else { return }
    throw error(one, "and \(other) give the same setting: keep one of them")
  }

  func error(_ key: String, _ problem: String) -> ConfigurationError { source.error(path + [key], problem) }

  /// Only what the table of settings has can be asked for: the rest is refused as unknown.
  private func value(of key: String) -> ConfigurationValue? {
    assert(fields[key] != nil, "\(key) is missing in the table of settings")
    return value[key]
  }

  private func inner(_ key: String) -> SettingShape.Fields {
    switch fields[key] {
    case .object(let fields), .objects(let fields), .named(let fields): return fields
    default:
      assertionFailure("\(key) is missing in the table of settings")
      return [:]
    }
  }
}

/// Where values come from besides the configuration's own text.
struct ConfigurationSource {
  /// What relative paths start from: the folder of the configuration file.
  let directory: String
  /// The variable that a value came from, by the setting's name.
  var origins: [String: String] = [:]
  /// The files that values have been read from, so that they can be watched.
  let files = FilesRead()

  final class FilesRead {
    fileprivate(set) var paths: [String] = []
  }

  func absolute(_ path: String) -> String {
    path.hasPrefix("/") ? path : directory + "/" + path
  }

  /// The value that stands in a file.
  func text(of file: String, _ setting: [String]) throws(ConfigurationError) -> String {
    files.paths.append(absolute(file))
    let bytes: [UInt8]
    do throws(SystemError) { bytes = try FileContents.read(absolute(file)) } catch {
      throw self.error(setting, FileText.problem(absolute(file), error))
    }
    guard let text = FileText.value(bytes) else { throw error(setting, FileText.notText(file)) }
    return text
  }

  /// The variable that a value, or what holds it, came from.
  func origin(of path: [String]) -> String? {
    path.indices.reversed().lazy.compactMap { origins[Self.name(Array(path[...$0]))] }.first
  }

  func error(_ path: [String], _ problem: String) -> ConfigurationError {
    ConfigurationError(key: Self.name(path), variable: origin(of: path), problem: problem)
  }

  /// A setting's path as errors show it.
  static func name(_ path: [String]) -> String {
    guard !path.isEmpty else { return "the configuration" }
    let shown = path.map(Shown.key)
    return shown.dropFirst().reduce(shown[0]) { $1.hasPrefix("[") ? $0 + $1 : "\($0).\($1)" }
  }
}
