/// The key of `data` whose value may become a page if a push has no room for it (rule UP-21).
extension SendRequest {
  static let extensionKey = "ext"

  /// Nil if absent or null.
  var extensionNode: Int? {
    guard let dataNode, let node = document.value(Self.extensionKey, of: dataNode), document.kind(node) != .null else {
      return nil
    }
    return node
  }

  public var hasExtension: Bool { extensionNode != nil }

  /// The value as devices get it: a string, or compact JSON.
  public var extensionText: [UInt8]? {
    guard let node = extensionNode else { return nil }
    if document.kind(node) == .string { return document.string(node) }
    var text: [UInt8] = []
    document.append(node, to: &text)
    return text
  }
}
