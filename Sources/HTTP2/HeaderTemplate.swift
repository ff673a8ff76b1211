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

  struct Field {
    let name: [UInt8]
    /// Empty for a variable one.
    let constant: [UInt8]
    /// Which value of a `HeaderValues` it has; -1 for a constant.
    let variable: Int
    let indexing: Indexing
    /// Where the static table has name and value; 0 for nowhere.
    let staticField: Int
    /// Where the static table has the name; 0 for nowhere.
    let staticName: Int
  }

  let fields: [Field]
  public let variableCount: Int

  /// - Parameters:
  ///   - constant: names in lower case with their values, `:method` `POST` among them.
  ///   - variable: names in the order in which `HeaderValues` gives them. Pseudo-headers among them are never absent.
  ///   - unindexed: names of variable headers whose values differ from request to request, and so must not push out of the
  ///     compression table what repeats.
  public init(constant: [(String, String)], variable: [String], unindexed: [String] = []) {
    precondition(constant.contains { $0 == (":method", "POST") }, "requests are POSTs")
    var fields = constant.map { Field(constant: $0.0, $0.1) }
    for (index, name) in variable.enumerated() {
      fields.append(Field(variable: name, index, isIndexed: !unindexed.contains(name)))
    }
    self.fields = fields.filter(\.isPseudo) + fields.filter { !$0.isPseudo }
    variableCount = variable.count
  }
}

extension HeaderTemplate.Field {
  fileprivate init(constant name: String, _ value: String) {
    self.init(
      name: Array(name.utf8), constant: Array(value.utf8), variable: -1, indexing: .whole,
      staticField: StaticTable.index(name, value), staticName: StaticTable.index(name))
  }

  fileprivate init(variable name: String, _ index: Int, isIndexed: Bool) {
    self.init(
      name: Array(name.utf8), constant: [], variable: index,
      indexing: isIndexed ? .whole : name == "authorization" ? .never : .name, staticField: 0,
      staticName: StaticTable.index(name))
  }

  var isPseudo: Bool { name.first == UInt8(ascii: ":") }
}
