/// A secret of 256 random bits in the text that its owner shows, with what is kept of it.
public struct NewSecret: Sendable {
  public enum Kind: String, Sendable {
    /// A backend's key to the gateway.
    case key = "pf1k"
    /// What a device proves itself with.
    case device = "pf1d"
  }

  /// Names it without giving it away.
  public let id: [UInt8]
  /// `<kind>~<id>~<secret>`.
  public let text: [UInt8]
  /// SHA-256 of the text.
  public let hash: [UInt8]

  public init(_ kind: Kind) {
    // The system's random numbers (getrandom).
    var random = SystemRandomNumberGenerator()
    func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &random) } }
    id = Base64URL.encode(bytes(9))
    text = Array(kind.rawValue.utf8) + [0x7E] + id + [0x7E] + Base64URL.encode(bytes(32))
    hash = Digest.sha256(text)
  }

  /// Bytes of an id and of a secret as text: 9 and 32 random ones in Base64.
  private static let (idLength, secretLength) = (12, 43)

  /// The form of an id alone.
  public static func isID(_ text: [UInt8]) -> Bool {
    text.count == idLength && text.allSatisfy { Base64URL.alphabet.contains($0) }
  }

  /// The id in a text of this kind; nil where it can't be one.
  public static func id(in text: [UInt8], _ kind: Kind) -> [UInt8]? {
    let name = kind.rawValue.utf8
    let id = name.count + 1..<name.count + 1 + idLength
    guard text.count == id.upperBound + 1 + secretLength, text.starts(with: name), text[id.lowerBound - 1] == 0x7E,
      text[id.upperBound] == 0x7E, text.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), text.count(where: { $0 == 0x7E }) == 2
    else { return nil }
    return Array(text[id])
  }
}
