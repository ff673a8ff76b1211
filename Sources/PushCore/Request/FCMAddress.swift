/// The target of an FCM message as one text, which recipients, registry and outcomes store and compare:
///
/// | Text | In the message |
/// |---|---|
/// | a registration token | `token` |
/// | `fid:<id>` | `fid`: the app's installation, by its Firebase id |
/// | `/topics/<name>` | `topic`: one that FCM itself keeps |
/// | `'a' in topics && …` | `condition`, over such topics |
///
/// The first bytes tell the kinds apart: no token has a slash, a quote or a parenthesis, or begins with `fid:`.
public enum FCMAddress: Sendable {
  case token, installation, topic, condition

  public init(_ text: ArraySlice<UInt8>) {
    switch text.first {
    case UInt8(ascii: "/"): self = .topic
    case UInt8(ascii: "'"), UInt8(ascii: "("), UInt8(ascii: "!"): self = .condition
    case UInt8(ascii: "f") where text.starts(with: Self.installationPrefix): self = .installation
    default: self = .token
    }
  }

  /// True if the text can be a token issued by Google: FCM's tokens have a colon, GCM's at least 100 bytes.
  public static func canBeGiven(_ text: [UInt8]) -> Bool { text.count >= 100 || text.contains(UInt8(ascii: ":")) }

  /// Appends the member of `message` that names the target: `"token":"…"`.
  static func append(_ text: ArraySlice<UInt8>, to body: inout [UInt8]) {
    switch FCMAddress(text) {
    case .token:
      body.append(#""token":"#)
      body.appendSafeJSONString(text)
    case .installation:
      body.append(#""fid":"#)
      body.appendSafeJSONString(text.dropFirst(installationPrefix.count))
    case .topic:
      body.append(#""topic":"#)
      body.appendSafeJSONString(text.dropFirst(topicPrefix.count))
    case .condition:
      body.append(#""condition":"#)
      body.appendSafeJSONString(text)
    }
  }

  static let installationPrefix = Array("fid:".utf8)
  static let topicPrefix = Array("/topics/".utf8)
}
