/// Limits and cleans the body of an error answer before it is interpreted.
enum ErrorBody {
  /// Bytes. A larger body is ignored: the status alone decides.
  static let largest = 16 * 1024

  static func document(_ body: [UInt8]) -> JSONDocument? {
    guard !body.isEmpty, body.count <= largest else { return nil }
    return try? JSONDocument(body, limits: JSONLimits(bytes: largest, depth: 16, nodes: 2000))
  }

  /// Makes a provider's word safe for logs and headers: printable ASCII, at most 200 characters.
  static func word(_ text: [UInt8]) -> String {
    String(decoding: text.prefix(200).map { 0x20...0x7E ~= $0 ? $0 : 0x3F }, as: UTF8.self)
  }
}
