import PushCore

/// The fields of an object that a Go program has written. As in Go, the values "", 0, false, null, [] and {} are absent.
struct GorushFields {
  let document: JSONDocument
  /// In the order of the object, without the taken ones.
  private(set) var members: [(name: String, node: Int)] = []

  /// Fields for which 0 is a value.
  private static let numbers: Set = ["badge", "expiration"]

  init(_ document: JSONDocument, _ node: Int) throws(Rejection) {
    self.document = document
    guard document.kind(node) == .object else { throw Rejection(.invalidParameters, "expected an object") }
    for (nameNode, value) in document.members(of: node) {
      let name = document.text(nameNode)
      let isAbsent =
        switch document.kind(value) {
        case .null, .false: true
        case .true: false
        case .number: !Self.numbers.contains(name) && document.integer(value) == 0
        case .string: document.source(value).isEmpty
        case .array, .object: document.count(value) == 0
        }
      if !isAbsent { members.append((name, value)) }
    }
  }

  mutating func take(_ name: String) -> Int? {
    guard let index = members.firstIndex(where: { $0.name == name }) else { return nil }
    return members.remove(at: index).node
  }

  /// A field's value as it was written.
  mutating func json(_ name: String) -> JSONRaw? { take(name).map { JSONRaw(document.raw($0)) } }

  func peek(_ name: String) throws(Rejection) -> [UInt8]? {
    var copy = self
    return try copy.string(name)
  }

  mutating func string(_ name: String) throws(Rejection) -> [UInt8]? {
    guard let node = take(name) else { return nil }
    guard document.kind(node) == .string else { throw Self.wrong(name, "a string") }
    return document.string(node)
  }

  mutating func flag(_ name: String) throws(Rejection) -> Bool {
    guard let node = take(name) else { return false }
    guard document.kind(node) == .true else { throw Self.wrong(name, "a boolean") }
    return true
  }

  mutating func object(_ name: String) throws(Rejection) -> Int? {
    guard let node = take(name) else { return nil }
    guard document.kind(node) == .object else { throw Self.wrong(name, "an object") }
    return node
  }

  mutating func members(of name: String) throws(Rejection) -> [(name: String, node: Int)] {
    guard let node = try object(name) else { return [] }
    return try GorushFields(document, node).members
  }

  /// The tokens of `tokens` and `to`.
  mutating func tokens() throws(Rejection) -> [[UInt8]] {
    var tokens: [[UInt8]] = []
    if let list = take("tokens") {
      for element in document.elements(of: list) where document.kind(element) == .string {
        tokens.append(document.string(element))
      }
      guard tokens.count == document.count(list) else { throw Self.wrong("tokens", "an array of strings") }
    }
    if let one = try string("to") { tokens.append(one) }
    guard (1...1_000).contains(tokens.count) else { throw Self.wrong("tokens", "1 to 1000 tokens") }
    return tokens
  }

  func refuseRest() throws(Rejection) {
    guard let (name, _) = members.first else { return }
    throw Rejection(.invalidParameters, "\(name.prefix(64)): is not supported")
  }

  private static func wrong(_ name: String, _ expected: String) -> Rejection {
    Rejection(.invalidParameters, "\(name): expected \(expected)")
  }
}
