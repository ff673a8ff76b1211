import Wire

/// The vendor's word in the body of an error, for people and for ``WebPushReply``'s table.
///
/// | Vendor | Body |
/// |---|---|
/// | Apple | `{"reason":"BadJwtToken"}` |
/// | Mozilla | `{"code":410,"errno":103,"error":"Gone","message":"…"}`; the word is `errno 103` |
/// | Google | an HTML page, whose title is the word, or a line of text |
/// | others | text, or JSON with `error` or `message` |
///
/// The word never has the endpoint, which is a secret: what looks like an address, or has a part of the path, is left out.
struct WebPushErrorBody {
  /// The parts of the endpoint's path that may be secrets, each once.
  private let parts: [ArraySlice<UInt8>]

  /// - Parameter path: of the endpoint, with its query.
  init(path: [UInt8]) {
    let texts = [path, PercentEncoding.decode(path[...], keepsOther: true) ?? []]
    let split = texts.flatMap { text in text.split { Self.separators.contains($0) } + text.split { !Bytes.isAlphanumeric($0) } }
    parts = Array(Set(split.filter { $0.count >= Self.shortestPart }))
  }

  /// Nil if the body has none. Accepts any body.
  func word(_ body: [UInt8]) -> String? {
    guard body.count <= ErrorBody.largest, let first = body.first(where: { $0 > 0x20 }) else { return nil }
    switch first {
    case UInt8(ascii: "{"), UInt8(ascii: "["): return ErrorBody.document(body).flatMap { word($0) }
    case UInt8(ascii: "<"): return title(body)
    default:
      return cleaned(body.drop { $0 <= 0x20 }.prefix { $0 != 0x0A && $0 != 0x0D })
    }
  }

  private func word(_ document: JSONDocument) -> String? {
    if let reason = document.string("reason") { return cleaned(reason[...]) }
    if let node = document.value("errno", of: document.root), let number = document.integer(node) {
      return "errno \(number)"
    }
    return (document.string("error") ?? document.string("message")).flatMap { cleaned($0[...]) }
  }

  private func title(_ page: [UInt8]) -> String? {
    guard let start = Self.place(of: "<title>", in: page[...]) else { return nil }
    let rest = page[(start + 7)...]
    return Self.place(of: "</title>", in: rest).flatMap { cleaned(rest[..<$0]) }
  }

  /// - Parameter tag: in lower case. The page may have it in any letter case.
  private static func place(of tag: String, in page: ArraySlice<UInt8>) -> Int? {
    page.indices.first { page[$0] == UInt8(ascii: "<") && TextForm.isAnyCase(page[$0...].prefix(tag.utf8.count), of: tag.utf8) }
  }

  /// At most 200 printable ASCII characters; nil if nothing is left. Omits each word that is long, has the signs of an address,
  /// or has a part of the endpoint's path. Reads only the beginning of a long text: device and service choose how much there is to
  /// compare.
  func cleaned(_ text: ArraySlice<UInt8>) -> String? {
    let beginning = text.prefix(Self.longestText)
    var words = beginning.split { $0 <= 0x20 }
    // The last word may be the beginning of a secret.
    if beginning.count < text.count { _ = words.popLast() }
    words.removeAll { word in
      word.count > Self.longestWord || word.contains(where: Self.addressSigns.contains)
        || parts.contains { Self.contains(word, $0) }
    }
    return words.isEmpty ? nil : ErrorBody.word(Array(words.joined(separator: [0x20])))
  }

  private static func contains(_ word: ArraySlice<UInt8>, _ part: ArraySlice<UInt8>) -> Bool {
    word.count >= part.count && (word.startIndex...word.endIndex - part.count).contains { word[$0...].starts(with: part) }
  }

  private static let longestText = 1024
  private static let longestWord = 64
  private static let separators = Array("/?&=".utf8)
  /// Shorter parts are no secrets.
  private static let shortestPart = 6
  private static let addressSigns = Array(#"/%\"#.utf8)
}
