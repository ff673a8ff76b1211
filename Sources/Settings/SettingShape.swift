import PushCore

/// The description of one setting. The reader, the environment variables, `docs/configuration.md` and the JSON Schema use it.
struct Setting: Sendable {
  /// For example `apps.<id>.apns[].key`. `<id>` is a name that the operator chooses. `[]` marks an object or a list of objects.
  let path: String
  let shape: SettingShape
  /// The text of the column "Default" if the setting has no default value.
  let unset: String
  /// Markdown. Links are relative to `docs`.
  private(set) var help: String

  init(_ path: String, _ shape: SettingShape, unset: String = "none", _ help: String = "") {
    (self.path, self.shape, self.unset, self.help) = (path, shape, unset, help)
  }

  func help(_ more: String) -> Setting { Setting(path, shape, unset: unset, help.isEmpty ? more : "\(help) \(more)") }
}

/// The type of a setting's value, with the default value. The words describe the values in `docs/configuration.md`.
indirect enum SettingShape: Sendable {
  case text(_ words: String, _ `default`: String? = nil)
  /// Several texts: a list, or one text with commas or spaces between the entries.
  case texts(_ words: String, _ `default`: String? = nil)
  case choice([String], _ `default`: String? = nil)
  /// A list of some of these words.
  case words([String])
  /// A time from one second to a number of days. With `isDefault`, the example is the default value.
  case time(days: Int64, example: String, isDefault: Bool = true, orNone: Bool = false)
  case number(ClosedRange<Int>, _ `default`: Int, _ unit: String = "")
  case flag(_ `default`: Bool)
  /// The path of a file, or the file's text: see ``Material``.
  case material(_ words: String)
  /// One material, or a list of them. One text can also name several files, with commas or spaces between them.
  case materials(_ words: String)
  case object(Fields)
  /// An object, or a list of objects.
  case objects(Fields)
  /// An object whose keys are names that the operator chooses.
  case named(Fields)

  typealias Fields = [String: SettingShape]

  /// True if the key with `File` or the variable with `_FILE` can name a file that contains the value.
  var mayBeInFile: Bool {
    switch self {
    case .text, .texts, .choice, .words, .time, .material, .materials: true
    case .number, .flag, .object, .objects, .named: false
    }
  }

  /// The members' shapes; nil for single values.
  var inner: Fields? {
    switch self {
    case .object(let fields), .objects(let fields), .named(let fields): fields
    default: nil
    }
  }

  /// The members of the whole configuration, made when a command starts. A sender has the same credential settings as an
  /// application.
  static let configuration = fields(
    Setting.table.flatMap { $1 }.flatMap { setting in
      let path = setting.path.split(separator: ".").map(String.init)
      let isCredential = path.count > 2 && path[1] == "<id>" && ["apns[]", "fcm", "webpush"].contains(path[2])
      let ofSender = path.prefix(2) + ["senders", "<sender>"] + path.dropFirst(2)
      return (isCredential ? [path[...], ofSender] : [path[...]]).map { ($0, setting.shape) }
    })

  private static func fields(_ settings: [(path: ArraySlice<String>, shape: SettingShape)]) -> Fields {
    Dictionary(grouping: settings) { String(($0.path.first ?? "").prefix { $0 != "[" }) }.mapValues { members in
      let path = members[0].path
      guard path.count > 1 else { return members[0].shape }
      let isNamed = path.dropFirst().first?.hasPrefix("<") == true
      let inner = fields(members.map { ($0.path.dropFirst(isNamed ? 2 : 1), $0.shape) })
      return isNamed ? .named(inner) : path.first?.hasSuffix("[]") == true ? .objects(inner) : .object(inner)
    }
  }

  fileprivate func known(_ value: ConfigurationValue, at path: [String], _ source: ConfigurationSource) -> ConfigurationValue {
    switch (self, value) {
    case (.objects(let fields), .array(let elements)):
      .array(elements.enumerated().map { fields.known($1, at: path + ["[\($0)]"], source) })
    case (.named(let fields), .object(let entries)):
      .object(
        entries.sorted { $0.key < $1.key }.reduce(into: [:]) {
          $0[$1.key] = fields.known($1.value, at: path + [$1.key], source)
        })
    case (.named, _): value
    default: inner?.known(value, at: path, source) ?? value
    }
  }

  /// The key under which a configuration can name its JSON Schema, for editors.
  static let schemaKey = "$schema"
}

extension SettingShape.Fields {
  /// Removes and reports each unknown key. The value of a misspelled key moves to the setting with the nearest name.
  func known(_ value: ConfigurationValue, at path: [String] = [], _ source: ConfigurationSource) -> ConfigurationValue {
    guard case .object(var members) = value else { return value }
    for (key, member) in members.sorted(by: { $0.key < $1.key }) {
      let base = key.hasSuffix("File") ? String(key.dropLast(4)) : key
      if let shape = self[key] {
        members[key] = shape.known(member, at: path + [key], source)
      } else if self[base]?.mayBeInFile != true, !(path.isEmpty && key == SettingShape.schemaKey) {
        members[key] = nil
        let known = keys.sorted()
        let meant = Spelling.nearest(to: key, among: known)
        source.report(
          ConfigurationError(
            key: ConfigurationSource.name(path + [key]),
            problem:
              "is not a setting\(meant.map { ": did you mean \($0)?" } ?? ""); known here: \(known.joined(separator: ", "))"))
        guard let meant, let shape = self[meant], members[meant] ?? .null == .null else { continue }
        members[meant] = shape.known(member, at: path + [key], source)
        source.misspelled[ConfigurationSource.name(path + [meant])] = ConfigurationSource.name(path + [key])
      }
    }
    return .object(members)
  }
}
