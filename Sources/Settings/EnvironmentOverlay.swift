import PushCore

/// Lays the environment's values over the file's.
///
/// A setting's variable is `PUSHFLEET_` and its path in capitals, each run of other characters one underscore; a list's entries
/// go by their numbers. An application or sender that the file doesn't name is named by the list in `PUSHFLEET_APPS` or
/// `…_SENDERS`; where nobody names any, its variables do: in small letters, with dots for underscores.
struct EnvironmentOverlay {
  static let prefix = "PUSHFLEET_"

  /// The file's values, then with the variables' over them.
  private(set) var value: ConfigurationValue
  /// The variable that a setting's value came from, by the setting's name.
  private(set) var origins: [String: String] = [:]
  private let fields: SettingShape.Fields
  /// Whether an object of names was empty before its variables were looked at, by its name.
  private var isNamedByVariables: [String: Bool] = [:]

  private struct Match {
    var path: [String]
    var shape: SettingShape
    var isFile = false
  }

  init(_ file: ConfigurationValue, _ environment: [String: String], _ fields: SettingShape.Fields) throws(ConfigurationError) {
    value = file
    self.fields = fields
    let variables = environment.keys.filter { $0.hasPrefix(Self.prefix) && !Self.isForOthers($0) }
    // What holds others comes before what it holds.
    for variable in variables.sorted(by: { ($0.utf8.count, $0) < ($1.utf8.count, $1) }) {
      try apply(variable, environment[variable] ?? "")
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
    origins[name] = variable
    switch match.shape {
    case .text, .texts, .number, .flag, .material: set(path, .string(text))
    case .named where text.first { !$0.isWhitespace } != "{":
      for entry in text.split(whereSeparator: { $0 == "," || $0.isWhitespace }).map(String.init) {
        if value(at: path + [entry]) == nil { set(path + [entry], .object([:])) }
      }
    case .object, .objects, .named: set(path, try .parse(Array(text.utf8), name: variable))
    }
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

  /// As a variable's name spells a path or a part of it.
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
      case .text, .texts, .number, .flag, .material: break
      case .object(let fields): found += matches(of: inner, in: fields, value?[key], path + [key])
      case .objects(let fields): found += elementMatches(of: inner, in: fields, value?[key], path + [key])
      case .named(let fields): found += entryMatches(of: inner, in: fields, value?[key], path + [key])
      }
    }
    return found
  }

  private mutating func elementMatches(
    of rest: Substring, in fields: SettingShape.Fields, _ value: ConfigurationValue?, _ path: [String]
  ) -> [Match] {
    let digits = rest.prefix { $0.isNumber }
    guard !digits.isEmpty, rest.dropFirst(digits.count).first == "_", let place = Int(digits) else {
      // One of several has to be said.
      if case .array? = value { return [] }
      return matches(of: rest, in: fields, value, path)
    }
    let elements: [ConfigurationValue] =
      switch value {
      case .array(let elements): elements
      case nil: []
      // One that stands alone is the first.
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
      key: variable, problem: "is no variable of a setting\(Spelling.suggestion(for: variable, among: known, longest: 500))")
  }

  private var known: [String] { Self.variables(of: fields, value, Self.prefix) + [Self.prefix + "CONFIG"] }

  /// Variables that aren't read, and look as if they were meant to be: a letter is wrong in `PUSHFLEET_`, or the case.
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

  /// Every variable that the configuration, as it stands, could take.
  private static func variables(of fields: SettingShape.Fields, _ value: ConfigurationValue?, _ prefix: String) -> [String] {
    fields.flatMap { key, shape in
      let name = prefix + spelled(key)
      let own = shape.mayBeInFile ? [name, name + "_FILE"] : [name]
      switch shape {
      case .text, .texts, .number, .flag, .material: return own
      case .objects(let fields):
        guard case .array(let elements)? = value?[key] else { return own + variables(of: fields, value?[key], name + "_") }
        return own + elements.indices.flatMap { variables(of: fields, elements[$0], "\(name)_\($0)_") }
      case .object(let fields): return own + variables(of: fields, value?[key], name + "_")
      case .named(let fields):
        let entries: [String: ConfigurationValue] = if case .object(let entries)? = value?[key] { entries } else { [:] }
        return own + entries.flatMap { variables(of: fields, $1, "\(name)_\(spelled($0))_") }
      }
    }
  }

  /// Variables of the command line and of tools around it, and those that Kubernetes sets for a service called pushfleet.
  private static func isForOthers(_ variable: String) -> Bool {
    let name = variable.dropFirst(prefix.utf8.count)
    if ["CONFIG", "PROGRAM"].contains(name) || name.hasPrefix("TEST_") || name.hasPrefix("WRITE_") { return true }
    return !name.hasPrefix("APPS_")
      && "_\(name)".firstMatch(of: /_(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT|PORT_[0-9]+_(TCP|UDP|SCTP)(_.*)?)$/) != nil
  }
}
