/// A validated JSON text and its tape. Values are converted on demand; a node is named by its index.
///
/// An index is valid for the lifetime of its document. For a node of another kind, accessors return nil or empty content.
public struct JSONDocument: Sendable {
  public let bytes: [UInt8]
  let nodes: ContiguousArray<JSONNode>

  /// Parses all of `bytes`. Time and memory are linear in their size, for hostile input too.
  public init(_ bytes: [UInt8], limits: JSONLimits = JSONLimits()) throws(JSONError) {
    nodes = try JSONReader.read(bytes, limits)
    self.bytes = bytes
  }

  public var root: Int { 0 }

  public func kind(_ node: Int) -> JSONKind { nodes[node].kind }

  /// The offset of the value's first byte (for a string: the opening quote).
  public func offset(_ node: Int) -> Int {
    Int(nodes[node].start) &- (nodes[node].kind == .string ? 1 : 0)
  }

  /// The number of elements or members; 0 for any other value.
  public func count(_ node: Int) -> Int { nodes[node].count }

  /// The node after `node` and its subtree: the next element of an array, the next name of an object.
  public func next(_ node: Int) -> Int { Int(nodes[node].next) }

  // MARK: Members and elements

  /// Name and value of each member, in order; empty unless `node` is an object.
  public func members(of node: Int) -> Members { Members(document: self, cursor: memberCursor(of: node)) }

  /// The same, for `while let` on the delivery path: it doesn't retain the nodes.
  @inline(__always)
  func memberCursor(of node: Int) -> MemberCursor {
    MemberCursor(name: node &+ 1, end: nodes[node].kind == .object ? next(node) : node &+ 1)
  }

  /// The elements in order; empty unless `node` is an array.
  public func elements(of node: Int) -> Elements { Elements(nodes: nodes, parent: node) }

  /// The value of the member called `name`, or nil. Scans the object.
  public func value(_ name: String, of node: Int) -> Int? {
    // Without `members`, whose iterator retains the nodes.
    guard nodes[node].kind == .object else { return nil }
    let end = next(node)
    var key = node &+ 1
    while key < end {
      if isString(key, name) { return key &+ 1 }
      key = next(key &+ 1)
    }
    return nil
  }

  /// The content of the member called `name`, or nil if it isn't a string. Without `node`, of the root.
  public func string(_ name: String, of node: Int = 0) -> [UInt8]? {
    guard let value = value(name, of: node), kind(value) == .string else { return nil }
    return string(value)
  }

  struct MemberCursor {
    var name: Int
    let end: Int

    @inline(__always)
    mutating func next(in document: borrowing JSONDocument) -> (name: Int, value: Int)? {
      guard name < end else { return nil }
      defer { name = document.next(name &+ 1) }
      return (name, name &+ 1)
    }
  }

  public struct Members: Sequence, IteratorProtocol {
    let document: JSONDocument
    var cursor: MemberCursor

    public mutating func next() -> (name: Int, value: Int)? { cursor.next(in: document) }
  }

  public struct Elements: Sequence, IteratorProtocol {
    private let nodes: ContiguousArray<JSONNode>
    private var element: Int
    private let end: Int

    init(nodes: ContiguousArray<JSONNode>, parent: Int) {
      self.nodes = nodes
      element = parent &+ 1
      end = nodes[parent].kind == .array ? Int(nodes[parent].next) : element
    }

    public mutating func next() -> Int? {
      guard element < end else { return nil }
      defer { element = Int(nodes[element].next) }
      return element
    }
  }

  // MARK: Scalars

  public func bool(_ node: Int) -> Bool? {
    switch nodes[node].kind {
    case .true: true
    case .false: false
    default: nil
    }
  }

  /// The byte range of a value, for a string without its quotes.
  public func source(_ node: Int) -> Range<Int> { Int(nodes[node].start)..<Int(nodes[node].end) }

  /// True if the content of a string differs from its source.
  public func hasEscapes(_ node: Int) -> Bool { nodes[node].has(JSONNode.escaped) }

  /// The UTF-8 content of a string; the source of any other scalar.
  public func string(_ node: Int) -> [UInt8] {
    guard hasEscapes(node) else { return Array(bytes[source(node)]) }
    return JSONText.unescaped(nodes[node], bytes.span)
  }

  /// The same, without a copy if there are no escapes.
  func slice(_ node: Int) -> ArraySlice<UInt8> { hasEscapes(node) ? string(node)[...] : bytes[source(node)] }

  public func utf8Count(_ node: Int) -> Int { JSONText.utf8Count(nodes[node], bytes.span) }

  /// A string for people and settings; too slow for the delivery path.
  public func text(_ node: Int) -> String { String(decoding: string(node), as: UTF8.self) }

  /// True if `node` is a string with exactly this content.
  public func isString(_ node: Int, _ text: String) -> Bool {
    guard nodes[node].kind == .string else { return false }
    if hasEscapes(node) { return string(node).elementsEqual(text.utf8) }
    let source = source(node)
    return source.count == text.utf8.count && bytes.span.extracting(source).equals(text.utf8.span)
  }

  /// The place of a node for error messages: `notification.title`, `registration_ids[3]`. Empty for the root.
  public func path(to target: Int) -> String {
    var path = ""
    var node = root
    while node != target {
      if let (name, value) = members(of: node).first(where: { $0.name <= target && target < next($0.value) }) {
        path += (path.isEmpty ? "" : ".") + pathComponent(name)
        node = target == name ? name : value
      } else if let (index, element) = elements(of: node).enumerated().first(where: { target < next($0.element) }) {
        path += "[\(index)]"
        node = element
      } else {
        return path
      }
    }
    return path
  }

  public func pathComponent(_ node: Int) -> String {
    let name = string(node)
    let excerpt = JSONText.excerpt(name)
    let plain = name.allSatisfy { $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "-") || Bytes.isAlphanumeric($0) }
    return plain && !name.isEmpty && name.count <= 32 ? String(excerpt.dropFirst().dropLast()) : excerpt
  }
}
