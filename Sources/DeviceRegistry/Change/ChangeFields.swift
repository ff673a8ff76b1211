import PushCore

/// The strict reading of objects with known fields, for changes and acknowledgements.
extension JSONDocument {
  init(change body: [UInt8], most: Int, depth: Int) throws(ChangeRefusal) {
    do throws(JSONError) {
      try self.init(body, limits: JSONLimits(bytes: most, depth: depth))
    } catch {
      throw ChangeRefusal(.invalidJSON, error.description)
    }
  }

  /// - Parameter ignored: a key to ignore.
  func fields<Field: RawRepresentable<String> & CaseIterable & Hashable>(
    of node: Int, ignoring ignored: String? = nil
  ) throws(ChangeRefusal) -> [Field: Int] {
    guard kind(node) == .object else { throw .invalid("expected an object, found \(kind(node).words)") }
    var fields: [Field: Int] = [:]
    for (name, value) in members(of: node) {
      let key = text(name)
      if key == ignored { continue }
      guard let field = Field(rawValue: key) else {
        let meant = Spelling.suggestion(for: key, among: Field.allCases.map(\.rawValue))
        throw .invalid("\(pathComponent(name)): unknown key at byte \(offset(name))\(meant)")
      }
      fields[field] = value
    }
    return fields
  }
}

extension Dictionary where Key: RawRepresentable<String> {
  /// The only one of these fields that is there.
  func only(_ fields: Key...) throws(ChangeRefusal) -> Key {
    let given = fields.filter { self[$0] != nil }
    guard given.count == 1 else {
      throw .invalid("expected exactly one of \(fields.map(\.rawValue).joined(separator: ", "))")
    }
    return given[0]
  }
}
