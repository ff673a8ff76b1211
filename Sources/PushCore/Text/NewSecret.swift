import Wire

/// A new secret with 256 random bits: the text for its owner, and the hash to store.
public struct NewSecret: Sendable {
  public enum Kind: String, Sendable {
    case key = "pf1k"
    case device = "pf1d"
  }

  /// Identifies the secret without revealing it.
  public let id: [UInt8]
  /// `<kind>~<id>~<secret>`.
  public let text: [UInt8]
  public let hash: [UInt8]

  public init(_ kind: Kind) {
    var random = SystemRandomNumberGenerator()
    func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &random) } }
    id = Base64URL.encode(bytes(9))
    text = Array(kind.rawValue.utf8) + [0x7E] + id + [0x7E] + Base64URL.encode(bytes(32))
    hash = Digest.sha256(text)
  }

  /// Characters of an id and of a secret: 9 and 32 random bytes in Base64.
  private static let (idLength, secretLength) = (12, 43)

  public static func isID(_ text: [UInt8]) -> Bool {
    text.count == idLength && text.allSatisfy { Base64URL.alphabet.contains($0) }
  }

  /// The id in a text of this kind; nil if the form is wrong.
  public static func id(in text: [UInt8], _ kind: Kind) -> [UInt8]? {
    let name = kind.rawValue.utf8
    let id = name.count + 1..<name.count + 1 + idLength
    guard text.count == id.upperBound + 1 + secretLength, text.starts(with: name), text[id.lowerBound - 1] == 0x7E,
      text[id.upperBound] == 0x7E, text.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), text.count(where: { $0 == 0x7E }) == 2
    else { return nil }
    return Array(text[id])
  }
}
