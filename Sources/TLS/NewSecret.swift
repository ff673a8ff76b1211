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

  /// The id in a text of this kind; nil where it can't be one.
  public static func id(in text: [UInt8], _ kind: Kind) -> [UInt8]? {
    let parts = text.split(separator: 0x7E, omittingEmptySubsequences: false)
    guard parts.count == 3, parts[0].elementsEqual(kind.rawValue.utf8), parts[1].count == 12, parts[2].count == 43,
      text.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
    else { return nil }
    return Array(parts[1])
  }
}
