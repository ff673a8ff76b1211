/// Refuses duplicate names in an object, compared after unescaping (RFC 7493 §2.3): parsers choose differently among them.
enum JSONNames {
  /// Objects with up to this many members are compared pairwise, larger ones by hashing.
  private static let fewMembers = 16

  static func refuseDuplicates(
    _ nodes: ContiguousArray<JSONNode>, of object: Int, in bytes: borrowing Span<UInt8>
  ) throws(JSONError) {
    let members = nodes[object].count
    guard members > 1 else { return }
    guard members <= fewMembers else { return try refuseByHashing(nodes, of: object, in: bytes) }

    // One bit for each fingerprint: most names need no comparison.
    var seen: UInt64 = 0
    var name = object &+ 1
    var index = 0
    while index < members {
      let node = nodes[name]
      var suspect = true
      if !node.has(JSONNode.escaped) {
        let bit: UInt64 = 1 << (fingerprint(node, bytes) & 63)
        suspect = seen & bit != 0
        seen |= bit
      } else {
        seen = .max
      }
      if suspect { try compare(name, withEarlierOf: object, nodes, bytes) }
      name = Int(nodes[name &+ 1].next)
      index &+= 1
    }
  }

  private static func compare(
    _ name: Int, withEarlierOf object: Int, _ nodes: ContiguousArray<JSONNode>, _ bytes: borrowing Span<UInt8>
  ) throws(JSONError) {
    var earlier = object &+ 1
    while earlier != name {
      if areEqual(nodes[name], nodes[earlier], bytes) { throw duplicate(nodes[name], bytes) }
      earlier = Int(nodes[earlier &+ 1].next)
    }
  }

  @inline(__always)
  private static func fingerprint(_ node: JSONNode, _ bytes: borrowing Span<UInt8>) -> UInt32 {
    let length = node.end &- node.start
    guard length > 0 else { return 0 }
    let first = UInt32(bytes[Int(node.start)])
    let last = UInt32(bytes[Int(node.end) &- 1])
    let middle = UInt32(bytes[Int(node.start &+ length / 2)])
    return (first &* 31 &+ last &* 17 &+ middle &* 7 &+ length &* 3)
  }

  /// An open-addressing table with the standard library's randomly seeded hash: linear for hostile names too.
  private static func refuseByHashing(
    _ nodes: ContiguousArray<JSONNode>, of object: Int, in bytes: borrowing Span<UInt8>
  ) throws(JSONError) {
    let members = nodes[object].count
    var size = 64
    while size < members &* 2 { size &*= 2 }
    var slots = ContiguousArray<UInt32>(repeating: 0, count: size)
    var name = object &+ 1
    var index = 0
    while index < members {
      let node = nodes[name]
      var slot = hash(node, bytes) & (size &- 1)
      while slots[slot] != 0 {
        if areEqual(nodes[Int(slots[slot])], node, bytes) { throw duplicate(node, bytes) }
        slot = (slot &+ 1) & (size &- 1)
      }
      slots[slot] = UInt32(truncatingIfNeeded: name)
      name = Int(nodes[name &+ 1].next)
      index &+= 1
    }
  }

  private static func hash(_ node: JSONNode, _ bytes: borrowing Span<UInt8>) -> Int {
    var hasher = Hasher()
    if node.has(JSONNode.escaped) {
      for byte in JSONText.unescaped(node, bytes) { hasher.combine(byte) }
    } else {
      var at = Int(node.start)
      while at < Int(node.end) {
        hasher.combine(bytes[at])
        at &+= 1
      }
    }
    return hasher.finalize()
  }

  static func areEqual(_ one: JSONNode, _ other: JSONNode, _ bytes: borrowing Span<UInt8>) -> Bool {
    if one.has(JSONNode.escaped) || other.has(JSONNode.escaped) {
      return JSONText.unescaped(one, bytes) == JSONText.unescaped(other, bytes)
    }
    let (first, second) = (Int(one.start)..<Int(one.end), Int(other.start)..<Int(other.end))
    return bytes.extracting(first).equals(bytes.extracting(second))
  }

  private static func duplicate(_ node: JSONNode, _ bytes: borrowing Span<UInt8>) -> JSONError {
    JSONError(offset: Int(node.start) - 1, reason: "duplicate key \(JSONText.excerpt(JSONText.unescaped(node, bytes)))")
  }
}
