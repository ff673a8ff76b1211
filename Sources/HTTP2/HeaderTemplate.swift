/// The header list that all requests of one kind share: names, constant values, and how each is compressed; made once.
///
/// Pseudo-headers are put first, whatever the order given (RFC 9113 §8.3).
public final class HeaderTemplate {
  /// What becomes of a value in the compression table (RFC 7541 §6).
  enum Indexing {
    /// Enters it: from the second time on field and value are one index.
    case whole
    /// Only the name is to be found there: it enters with the first value, the values that follow are literals.
    case name
    /// As `name`, and marked as not to be indexed by anybody on the way (§6.2.3).
    case never
  }

  /// What of a field is decided beforehand; its bytes are in `names` and `constants`.
  struct Field {
    let isPseudo: Bool
    /// Which value of a `HeaderValues` it has; -1 for a constant.
    let variable: Int
    let indexing: Indexing
    /// Where the static table has name and value; 0 for nowhere.
    let staticField: Int
    /// Where the static table has the name; 0 for nowhere.
    let staticName: Int
  }

  let fields: [Field]
  let names: [[UInt8]]
  /// By field; empty for variable ones.
  let constants: [[UInt8]]
  public let variableCount: Int
  /// None of the variable headers enters the table more than by its name: a block of the template is like the one before but for
  /// their values.
  let repeats: Bool

  /// - Parameters:
  ///   - constant: names in lower case with their values, `:method` among them.
  ///   - variable: names in the order in which `HeaderValues` gives them. Pseudo-headers among them are never absent.
  ///   - unindexed: names of variable headers whose values differ from request to request, and so must not push out of the
  ///     compression table what repeats.
  public init(constant: [(String, String)], variable: [String], unindexed: [String] = []) {
    precondition(constant.contains { $0.0 == ":method" }, "a request has a method")
    precondition(variable.count <= HeaderValues.most, "at most sixteen headers are variable")
    var layout = constant.map { (name: $0.0, value: $0.1, field: Field(constant: $0.0, $0.1)) }
    for (index, name) in variable.enumerated() {
      layout.append((name, "", Field(variable: name, index, isIndexed: !unindexed.contains(name))))
    }
    layout = layout.filter(\.field.isPseudo) + layout.filter { !$0.field.isPseudo }
    fields = layout.map(\.field)
    repeats = fields.allSatisfy { $0.variable < 0 || $0.indexing != .whole }
    names = layout.map { Array($0.name.utf8) }
    constants = layout.map { Array($0.value.utf8) }
    variableCount = variable.count
  }

  /// Another one, of the requests that have `values` in common except for those of `varying`, by which theirs are given: what is
  /// constant is neither handed over nor compared again.
  public init(_ template: HeaderTemplate, fixing values: HeaderValues, varying: [Int]) {
    var layout: [(name: [UInt8], value: [UInt8], field: Field)] = []
    for (index, field) in template.fields.enumerated() {
      if field.variable < 0 {
        layout.append((template.names[index], template.constants[index], field))
      } else if let place = varying.firstIndex(of: field.variable) {
        layout.append((template.names[index], [], Field(field, variable: place)))
      } else if let range = values.range(field.variable) {
        layout.append((template.names[index], Array(values.bytes[range]), Field(field, variable: -1)))
      }
    }
    fields = layout.map(\.field)
    repeats = fields.allSatisfy { $0.variable < 0 || $0.indexing != .whole }
    names = layout.map(\.name)
    constants = layout.map(\.value)
    variableCount = varying.count
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
