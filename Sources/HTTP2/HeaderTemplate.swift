/// The common header list of requests of one kind: names, constant values, and the compression of each. Pseudo-headers come
/// first (RFC 9113 §8.3).
public final class HeaderTemplate {
  /// How a value uses the compression table (RFC 7541 §6).
  enum Indexing {
    /// The field enters the table. From the second time on, name and value are one index.
    case whole
    /// Only the name is looked up. It enters with the first value; later values are literals.
    case name
    /// Like `name`, and marked so that no intermediary indexes it (§6.2.3).
    case never
  }

  /// The constant properties of a field. Its bytes are in `names` and `constants`.
  struct Field {
    let isPseudo: Bool
    /// Index of its value in `HeaderValues`; -1 for a constant.
    let variable: Int
    let indexing: Indexing
    /// Index of name and value in the static table; 0 if absent.
    let staticField: Int
    let staticName: Int
  }

  let fields: [Field]
  let names: [[UInt8]]
  let constants: [[UInt8]]
  public let variableCount: Int
  /// True if no variable value enters the table, only its name. Blocks of the template then differ only in these values.
  let repeats: Bool
  /// The most bytes of a block without the variable values: names, constants, and a byte or two integers of five for each.
  let mostBytes: Int

  /// - Parameters:
  ///   - constant: lower-case names with values, including `:method`.
  ///   - variable: names in the order of `HeaderValues`. Pseudo-headers among them are never absent.
  ///   - unindexed: variable headers with different values in each request, which must not evict repeated fields.
  public convenience init(constant: [(String, String)], variable: [String], unindexed: [String] = []) {
    precondition(constant.contains { $0.0 == ":method" }, "a request has a method")
    precondition(variable.count <= HeaderValues.most, "at most sixteen headers are variable")
    var layout: [Part] = constant.map { (Array($0.0.utf8), Array($0.1.utf8), Field(constant: $0.0, $0.1)) }
    for (index, name) in variable.enumerated() {
      layout.append((Array(name.utf8), [], Field(variable: name, index, isIndexed: !unindexed.contains(name))))
    }
    self.init(layout.filter(\.field.isPseudo) + layout.filter { !$0.field.isPseudo }, variableCount: variable.count)
  }

  /// Derives a template in which all `values` are constant, except the `varying` ones, and need no further copy.
  public convenience init(_ template: HeaderTemplate, fixing values: HeaderValues, varying: [Int]) {
    var layout: [Part] = []
    for (index, field) in template.fields.enumerated() {
      if field.variable < 0 {
        layout.append((template.names[index], template.constants[index], field))
      } else if let place = varying.firstIndex(of: field.variable) {
        layout.append((template.names[index], [], Field(field, variable: place)))
      } else if let range = values.range(field.variable) {
        layout.append((template.names[index], Array(values.bytes[range]), Field(field, variable: -1)))
      }
    }
    self.init(layout, variableCount: varying.count)
  }

  private typealias Part = (name: [UInt8], value: [UInt8], field: Field)

  private init(_ layout: [Part], variableCount: Int) {
    fields = layout.map(\.field)
    repeats = fields.allSatisfy { $0.variable < 0 || $0.indexing != .whole }
    names = layout.map(\.name)
    constants = layout.map(\.value)
    self.variableCount = variableCount
    mostBytes = layout.reduce(0) { $0 + $1.name.count + $1.value.count + 20 }
  }
}

extension HeaderTemplate.Field {
  fileprivate init(_ other: Self, variable: Int) {
    self.init(
      isPseudo: other.isPseudo, variable: variable, indexing: other.indexing, staticField: other.staticField,
      staticName: other.staticName)
  }

  fileprivate init(constant name: String, _ value: String) {
    self.init(
      isPseudo: name.first == ":", variable: -1, indexing: .whole,
      staticField: StaticTable.index(name, value), staticName: StaticTable.index(name))
  }

  fileprivate init(variable name: String, _ index: Int, isIndexed: Bool) {
    self.init(
      isPseudo: name.first == ":", variable: index,
      indexing: isIndexed ? .whole : name == "authorization" ? .never : .name, staticField: 0,
      staticName: StaticTable.index(name))
  }
}
