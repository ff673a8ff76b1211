/// A validated JSON text and its tape. Nothing is converted before it is asked for; a node is named by its index.
///
/// Every index handed out by this document is valid for it as long as it lives; an accessor given a node of another kind answers nil
/// or an empty content, and never traps.
public struct JSONDocument: Sendable {
  /// The text as it came.
  public let bytes: [UInt8]
  let nodes: ContiguousArray<JSONNode>

  /// Reads the whole of `bytes`. Costs time and memory linear in them, for hostile input too.
  public init(_ bytes: [UInt8], limits: JSONLimits = JSONLimits()) throws(JSONError) {
    nodes = try JSONReader.read(bytes, limits)
    self.bytes = bytes
  }

  /// The value that the text is.
  public var root: Int { 0 }

  public func kind(_ node: Int) -> JSONKind { nodes[node].kind }

  /// The offset of the value's first byte (of a string: its opening quote).
  public func offset(_ node: Int) -> Int {
    Int(nodes[node].start) &- (nodes[node].kind == .string ? 1 : 0)
  }

  /// The elements of an array or members of an object; 0 for everything else.
  public func count(_ node: Int) -> Int { nodes[node].count }

  /// The node after `node` and all below it: the next element of an array, the next name of an object.
  public func next(_ node: Int) -> Int { Int(nodes[node].next) }

  // MARK: Members and elements

  /// Name and value of each member, in order; nothing when `node` isn't an object.
  public func members(of node: Int) -> Members { Members(nodes: nodes, parent: node) }

  /// The elements in order; nothing when `node` isn't an array.
  public func elements(of node: Int) -> Elements { Elements(nodes: nodes, parent: node) }

  /// The value of the member called `name`, or nil. Walks the object once.
  public func value(_ name: String, of node: Int) -> Int? {
    for (key, value) in members(of: node) where isString(key, name) { return value }
    return nil
  }

  public struct Members: Sequence, IteratorProtocol {
    private let nodes: ContiguousArray<JSONNode>
    private var name: Int
    private let end: Int

    init(nodes: ContiguousArray<JSONNode>, parent: Int) {
      self.nodes = nodes
      name = parent &+ 1
      end = nodes[parent].kind == .object ? Int(nodes[parent].next) : name
    }

    public mutating func next() -> (name: Int, value: Int)? {
      guard name < end else { return nil }
      defer { name = Int(nodes[name &+ 1].next) }
      return (name, name &+ 1)
    }
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

  /// The source of a value without a string's quotes; of a string without escapes, its content.
  public func source(_ node: Int) -> Range<Int> { Int(nodes[node].start)..<Int(nodes[node].end) }

  /// A string whose content isn't the plain slice ``source(_:)``.
  public func hasEscapes(_ node: Int) -> Bool { nodes[node].has(JSONNode.escaped) }

  /// The UTF-8 content of a string; the source of any other scalar.
  public func string(_ node: Int) -> [UInt8] {
    guard hasEscapes(node) else { return Array(bytes[source(node)]) }
    return JSONText.unescaped(nodes[node], bytes.span)
  }

  /// Appends what ``string(_:)`` answers, without another array.
  public func appendString(_ node: Int, to output: inout [UInt8]) {
    guard hasEscapes(node) else { return output.append(contentsOf: bytes[source(node)]) }
    JSONText.append(nodes[node], bytes.span, to: &output)
  }

  /// The length of ``string(_:)`` in bytes.
  public func utf8Count(_ node: Int) -> Int { JSONText.utf8Count(nodes[node], bytes.span) }

  /// A string as text for people and settings; not for the delivery path.
  public func text(_ node: Int) -> String { String(decoding: string(node), as: UTF8.self) }

  /// `node` is a string with exactly this content.
  public func isString(_ node: Int, _ text: String) -> Bool {
    guard nodes[node].kind == .string else { return false }
    if hasEscapes(node) { return string(node).elementsEqual(text.utf8) }
    var at = Int(nodes[node].start)
    guard Int(nodes[node].end) &- at == text.utf8.count else { return false }
    for byte in text.utf8 {
      guard bytes[at] == byte else { return false }
      at &+= 1
    }
    return true
  }

  /// Where a node stands, for people: `notification.title`, `registration_ids[3]`. Empty for the root. Names are shortened.
  public func path(to target: Int) -> String {
    var path = ""
    var node = root
    while node != target {
      var found: (text: String, node: Int)?
      switch nodes[node].kind {
      case .object:
        for (name, value) in members(of: node) where target == name || (target >= value && target < next(value)) {
          found = (pathComponent(name), target == name ? name : value)
        }
        if let found { path += (path.isEmpty ? "" : ".") + found.text }
      case .array:
        for (index, element) in elements(of: node).enumerated() where target >= element && target < next(element) {
          found = ("[\(index)]", element)
        }
        if let found { path += found.text }
      default: break
      }
      guard let found else { return path }
      node = found.node
    }
    return path
  }

  /// How a path spells the name of a member.
  public func pathComponent(_ node: Int) -> String {
    let name = string(node)
    let excerpt = JSONText.excerpt(name)
    let plain = name.allSatisfy { $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "-") || Bytes.isAlphanumeric($0) }
    return plain && !name.isEmpty && name.count <= 32 ? String(excerpt.dropFirst().dropLast()) : excerpt
  }
}
