import Foundation

/// Reads one object of the configuration, key by key, and refuses what it was not asked for.
///
/// A value comes from, in this order: the environment (`PUSHFLEET_` and the path in capitals, every other character an
/// underscore), a file named by the same variable with `_FILE`, the key itself, a file named by the key with `File`.
struct ConfigurationReader {
  let path: [String]
  let source: ConfigurationSource
  private let members: [String: ConfigurationValue]
  private var known: Set<String> = []

  init(_ value: ConfigurationValue?, path: [String], source: ConfigurationSource) throws(ConfigurationError) {
    self.path = path
    self.source = source
    switch value {
    case .object(let members): self.members = members
    case nil, .null: members = [:]
    case .some(let other): throw ConfigurationError(key: Self.name(path), problem: "must be an object, not \(other.kind)")
    }
  }

  /// The keys of an object whose keys are names, not settings.
  var names: [String] { members.keys.sorted() }

  func has(_ key: String) -> Bool {
    value(of: key) != nil || members[key + "File"] != nil || source.environment[variable(key)] != nil
      || source.environment[variable(key) + "_FILE"] != nil
  }

  mutating func string(_ key: String) throws(ConfigurationError) -> String? {
    known.formUnion([key, key + "File"])
    if let text = source.environment[variable(key)] { return text }
    if let file = source.environment[variable(key) + "_FILE"] { return try source.text(of: file, key: name(key)) }
    switch value(of: key) {
    case .string(let text): return text
    case nil: break
    case .some(let other): throw error(key, "must be a string, not \(other.kind)")
    }
    guard case .string(let file)? = members[key + "File"] else { return nil }
    return try source.text(of: file, key: name(key + "File"))
  }

  mutating func requiredString(_ key: String, for purpose: String) throws(ConfigurationError) -> String {
    guard let text = try string(key), !text.isEmpty else { throw error(key, "is missing: \(purpose)") }
    return text
  }

  /// A key, certificate or authority: the path of its file, relative to the configuration file, or its text.
  mutating func material(_ key: String) throws(ConfigurationError) -> Material? {
    known.formUnion([key, key + "File"])
    if let text = source.environment[variable(key)] { return Material(text, in: source) }
    if let file = source.environment[variable(key) + "_FILE"] { return .file(source.absolute(file)) }
    switch value(of: key) {
    case .string(let text): return Material(text, in: source)
    case nil: break
    case .some(let other): throw error(key, "must be the path of a file, or its text, not \(other.kind)")
    }
    guard case .string(let file)? = members[key + "File"] else { return nil }
    return .file(source.absolute(file))
  }

  mutating func integer(_ key: String, in range: ClosedRange<Int>) throws(ConfigurationError) -> Int? {
    known.insert(key)
    var found = value(of: key)
    if let text = source.environment[variable(key)] { found = Int(text).map { .integer($0) } ?? .string(text) }
    switch found {
    case nil: return nil
    case .integer(let number) where range.contains(number): return number
    case .some: throw error(key, "must be a whole number from \(range.lowerBound) to \(range.upperBound)")
    }
  }

  mutating func choice(_ key: String, of choices: [String]) throws(ConfigurationError) -> String? {
    guard let text = try string(key) else { return nil }
    guard choices.contains(text) else {
      throw error(key, "must be one of \(choices.map { "\"\($0)\"" }.joined(separator: ", "))")
    }
    return text
  }

  /// A string, or a list of strings; from the environment separated by commas.
  mutating func strings(_ key: String) throws(ConfigurationError) -> [String]? {
    guard source.environment[variable(key)] == nil, case .array(let elements)? = value(of: key) else {
      return try string(key).map { $0.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) } }
    }
    known.insert(key)
    var list: [String] = []
    for (index, element) in elements.enumerated() {
      guard case .string(let text) = element else { throw error("\(key)[\(index)]", "must be a string, not \(element.kind)") }
      list.append(text)
    }
    return list
  }

  mutating func object(_ key: String) throws(ConfigurationError) -> ConfigurationReader {
    known.insert(key)
    if let text = source.environment[variable(key)] {
      let value = try ConfigurationValue.parse(Data(text.utf8), name: variable(key))
      return try ConfigurationReader(value, path: path + [key], source: source)
    }
    return try ConfigurationReader(members[key], path: path + [key], source: source)
  }

  /// An object, or a list of them; none when the key is absent.
  mutating func objects(_ key: String) throws(ConfigurationError) -> [ConfigurationReader] {
    known.insert(key)
    guard case .array(let elements)? = value(of: key), source.environment[variable(key)] == nil else {
      return has(key) ? [try object(key)] : []
    }
    var readers: [ConfigurationReader] = []
    for (index, element) in elements.enumerated() {
      readers.append(try ConfigurationReader(element, path: path + ["\(key)[\(index)]"], source: source))
    }
    return readers
  }

  /// To be called when every setting has been read.
  func refuseUnknownKeys() throws(ConfigurationError) {
    guard let unknown = members.keys.filter({ !known.contains($0) }).min() else { return }
    let settings = known.filter { !$0.hasSuffix("File") }.sorted().joined(separator: ", ")
    throw error(unknown, "is not a setting; known here: \(settings)")
  }

  func error(_ key: String, _ problem: String) -> ConfigurationError { ConfigurationError(key: name(key), problem: problem) }

  private func value(of key: String) -> ConfigurationValue? {
    guard let value = members[key], value != .null else { return nil }
    return value
  }

  private func name(_ key: String) -> String { Self.name(path + [key]) }
  private func variable(_ key: String) -> String { source.variable(for: path + [key]) }
  private static func name(_ path: [String]) -> String { path.isEmpty ? "the file" : path.joined(separator: ".") }
}

/// Where values come from besides the file's own text.
struct ConfigurationSource {
  let environment: [String: String]
  /// What relative paths start from: the folder of the configuration file.
  let directory: String
  /// The files that values have been read from, so that they can be watched.
  let files = FilesRead()

  final class FilesRead {
    fileprivate(set) var paths: [String] = []
  }

  func variable(for path: [String]) -> String {
    let name = path.joined(separator: "_").uppercased()
    return "PUSHFLEET_" + String(name.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" })
  }

  func absolute(_ path: String) -> String {
    path.hasPrefix("/") ? path : directory + "/" + path
  }

  /// A secret's file, without the line break that editors leave at its end.
  func text(of file: String, key: String) throws(ConfigurationError) -> String {
    files.paths.append(absolute(file))
    guard let text = String(validating: try FileText.read(absolute(file), for: key), as: UTF8.self) else {
      throw ConfigurationError(key: key, problem: "names a file that is not UTF-8 text: \(Shown.path(file))")
    }
    return text.trimmingCharacters(in: .newlines)
  }
}
