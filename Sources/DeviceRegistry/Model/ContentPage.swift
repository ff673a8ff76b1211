import Wire

/// Content that is too large for a push. Devices fetch it by the name of its page.
public struct ContentPage: Sendable {
  /// Identifies the page: equal content is one page. 32 bytes.
  public var digest: [UInt8]
  public var app: [UInt8]
  public var content: [UInt8]
  /// Milliseconds for which it can be fetched.
  public var keep: Int64
  /// Maximum total bytes of the application's pages.
  public var most: Int64

  public init(digest: [UInt8], app: [UInt8], content: [UInt8], keep: Int64, most: Int64) {
    self.digest = digest
    self.app = app
    self.content = content
    self.keep = keep
    self.most = most
  }

  /// Characters of a name (letters, digits, `-`, `_`), six random bits each. The name is the only key to the page.
  public static let nameLength = 30

  public static func isName(_ text: [UInt8]) -> Bool {
    text.count == nameLength && text.allSatisfy(Base64URL.alphabet.contains)
  }

  static func makeName(_ random: () -> Int64) -> [UInt8] {
    var name: [UInt8] = []
    while name.count < nameLength {
      let bits = random()
      for place in Int64(0)..<10 { name.append(Base64URL.alphabet[Int(bits >> (6 * place) & 63)]) }
    }
    return name
  }
}
