import PushCore

/// Replaces values of the file by values of environment variables.
///
/// A variable's name is `PUSHFLEET_` and the setting's path in capitals. Each run of other characters becomes an underscore.
/// List entries use their index. `PUSHFLEET_APPS` and `…_SENDERS` name applications and senders that are not in the file.
/// Without any names, the names come from the other variables, in lower case with dots for underscores.
struct EnvironmentOverlay {
  static let prefix = "PUSHFLEET_"

  private(set) var value: ConfigurationValue
  /// The environment variable of a value, by the setting's name.
  private(set) var origins: [String: String] = [:]
  /// The errors of variables that can't be used.
  private(set) var errors: [ConfigurationError] = []
  private let fields = SettingShape.configuration
  /// True for an object of names that was empty before its variables were read, by the object's name.
  private var isNamedByVariables: [String: Bool] = [:]

  private struct Match {
    var path: [String]
    var shape: SettingShape
    var isFile = false
  }

  init(_ file: ConfigurationValue, _ environment: [String: String]) {
    value = file
    let variables = environment.keys.filter { $0.hasPrefix(Self.prefix) && !Self.isForOthers($0) }
    // Short names first, so that objects come before their members.
    for variable in variables.sorted(by: { ($0.utf8.count, $0) < ($1.utf8.count, $1) }) {
      do throws(ConfigurationError) { try apply(variable, environment[variable] ?? "") } catch { errors.append(error) }
    }
  }

  private mutating func apply(_ variable: String, _ text: String) throws(ConfigurationError) {
    let rest = Self.spelled(variable.dropFirst(Self.prefix.utf8.count))
    let found = matches(of: rest[...], in: fields, value, [])
    guard let match = found.first else { throw unknown(variable) }
    guard found.count == 1 else {
      let paths = found.map { ConfigurationSource.name($0.path) }.joined(separator: " or ")
      throw ConfigurationError(key: variable, problem: "could be \(paths): set it in the file")
    }
    let path = match.path
    guard let key = path.last else { return }
    let name = ConfigurationSource.name(path)
    if let other = origins[name] ?? origins[name + "File"] {
      throw ConfigurationError(key: variable, problem: "and \(other) give the same setting: keep one of them")
    }
    let beside = match.isFile ? key : key + "File"
    if match.shape.mayBeInFile { set(path.dropLast() + [beside], nil) }
    if match.isFile {
      set(path.dropLast() + [key + "File"], .string(text))
      origins[name + "File"] = variable
      return
    }
    switch match.shape {
    case .named where text.first { !$0.isWhitespace } != "{":
      for entry in text.split(whereSeparator: { $0 == "," || $0.isWhitespace }).map(String.init) {
        if value(at: path + [entry]) == nil { set(path + [entry], .object([:])) }
      }
    case .object, .objects, .named: set(path, try .parse(Array(text.utf8), name: variable))
    default: set(path, .string(text))
    }
    origins[name] = variable
  }

  private mutating func set(_ path: [String], _ new: ConfigurationValue?) {
    value = value.replacing(path[...], by: new) ?? .object([:])
  }

  private func value(at path: [String]) -> ConfigurationValue? {
    var value: ConfigurationValue? = value
    for key in path { value = value?[key] }
    return value
  }

  // MARK: names of variables

  /// A path, or a part of a path, in the spelling of variables.
  static func spelled(_ text: some StringProtocol) -> String {
    let words = text.uppercased().split { !($0.isASCII && ($0.isLetter || $0.isNumber)) }
    return words.joined(separator: "_")
  }

  private mutating func matches(
    of rest: Substring, in fields: SettingShape.Fields, _ value: ConfigurationValue?, _ path: [String]
  ) -> [Match] {
    var found: [Match] = []
    for (key, shape) in fields.sorted(by: { $0.key < $1.key }) {
      let name = Self.spelled(key)
      if rest == name { found.append(Match(path: path + [key], shape: shape)) }
      if shape.mayBeInFile, rest == name + "_FILE" { found.append(Match(path: path + [key], shape: shape, isFile: true)) }
      guard rest.hasPrefix(name + "_") else { continue }
      let inner = rest.dropFirst(name.count + 1)
      switch shape {
      case .object(let fields): found += matches(of: inner, in: fields, value?[key], path + [key])
      case .objects(let fields): found += elementMatches(of: inner, in: fields, value?[key], path + [key])
      case .named(let fields): found += entryMatches(of: inner, in: fields, value?[key], path + [key])
      default: break
      }
    }
    return found
  }

  private mutating func elementMatches(
    of rest: Substring, in fields: SettingShape.Fields, _ value: ConfigurationValue?, _ path: [String]
  ) -> [Match] {
    let digits = rest.prefix { $0.isNumber }
    guard !digits.isEmpty, rest.dropFirst(digits.count).first == "_", let place = Int(digits) else {
      // With several elements, the variable must name one.
      if case .array? = value { return [] }
      return matches(of: rest, in: fields, value, path)
    }
    let elements: [ConfigurationValue] =
      switch value {
      case .array(let elements): elements
      case nil: []
      // A single value counts as the first element.
      case .some(let only): [only]
      }
    guard place <= elements.count else { return [] }
    let inner = rest.dropFirst(digits.count + 1)
    let found = matches(of: inner, in: fields, place < elements.count ? elements[place] : nil, path + ["[\(place)]"])
    if !found.isEmpty, place == elements.count || elements.count == 1 { set(path, .array(elements)) }
    return found
  }

  private mutating func entryMatches(
    of rest: Substring, in fields: SettingShape.Fields, _ value: ConfigurationValue?, _ path: [String]
  ) -> [Match] {
    let entries: [String: ConfigurationValue] = if case .object(let entries)? = value { entries } else { [:] }
    let name = ConfigurationSource.name(path)
    let isOpen = isNamedByVariables[name] ?? entries.isEmpty
    isNamedByVariables[name] = isOpen
    var found: [Match] = []
    for (entry, value) in entries.sorted(by: { $0.key < $1.key }) where rest.hasPrefix(Self.spelled(entry) + "_") {
      found += matches(of: rest.dropFirst(Self.spelled(entry).count + 1), in: fields, value, path + [entry])
    }
    guard found.isEmpty, isOpen else { return found }
    for place in rest.indices where rest[place] == "_" && place > rest.startIndex {
      let entry = rest[..<place].lowercased().replacing("_", with: ".")
      let derived = matches(of: rest[rest.index(after: place)...], in: fields, nil, path + [entry])
      if !derived.isEmpty { return derived }
    }
    return []
  }

  private func unknown(_ variable: String) -> ConfigurationError {
    ConfigurationError(
      key: variable, problem: "belongs to no setting\(Spelling.suggestion(for: variable, among: known, longest: 500))")
  }

  private var known: [String] { Self.variables(of: fields, value, Self.prefix) + [Self.prefix + "CONFIG"] }

  /// Ignored variables that look misspelled: a wrong letter in `PUSHFLEET_`, or wrong case.
  func misspelled(_ environment: [String: String]) -> [(variable: String, meant: String)] {
    let near = environment.keys.filter { name in
      let beginning = name.uppercased().prefix(Self.prefix.count)
      return !name.hasPrefix(Self.prefix)
        && Spelling.distance(Array(beginning.utf8), Array(Self.prefix.utf8)) <= 2
    }
    guard !near.isEmpty else { return [] }
    let known = known
    return near.sorted().compactMap { name in
      let meant = known.map { (name: $0, distance: Spelling.distance(Array(name.uppercased().utf8), Array($0.utf8))) }
      return meant.min { $0.distance < $1.distance }.flatMap { $0.distance <= 2 ? (name, $0.name) : nil }
    }
  }

  private static func variables(of fields: SettingShape.Fields, _ value: ConfigurationValue?, _ prefix: String) -> [String] {
    fields.flatMap { key, shape in
      let name = prefix + spelled(key)
      let own = shape.mayBeInFile ? [name, name + "_FILE"] : [name]
      switch shape {
      case .objects(let fields):
        guard case .array(let elements)? = value?[key] else { return own + variables(of: fields, value?[key], name + "_") }
        return own + elements.indices.flatMap { variables(of: fields, elements[$0], "\(name)_\($0)_") }
      case .object(let fields): return own + variables(of: fields, value?[key], name + "_")
      case .named(let fields):
        let entries: [String: ConfigurationValue] = if case .object(let entries)? = value?[key] { entries } else { [:] }
        return own + entries.flatMap { variables(of: fields, $1, "\(name)_\(spelled($0))_") }
      default: return own
      }
    }
  }

  /// True for variables of the command line, of tools, and of Kubernetes for a service named pushfleet.
  private static func isForOthers(_ variable: String) -> Bool {
    let name = variable.dropFirst(prefix.utf8.count)
    if ["CONFIG", "PROGRAM"].contains(name) || name.hasPrefix("TEST_") || name.hasPrefix("WRITE_") { return true }
    return !name.hasPrefix("APPS_")
      && "_\(name)".firstMatch(of: /_(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT|PORT_[0-9]+_(TCP|UDP|SCTP)(_.*)?)$/) != nil
  }
}
