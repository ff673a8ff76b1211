/// Text formats that several fields share. All except user ids are ASCII allow-lists.
public enum TextForm {
  /// `#rrggbb` (GS-099).
  static func isColor(_ text: [UInt8]) -> Bool {
    text.count == 7 && text[0] == UInt8(ascii: "#") && text.dropFirst().allSatisfy(Bytes.isHex)
  }

  /// True if `text` equals `small`, a lower-case text, in any ASCII letter case.
  @inlinable package static func isAnyCase(_ text: some Sequence<UInt8>, of small: some Sequence<UInt8>) -> Bool {
    text.lazy.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }.elementsEqual(small)
  }

  /// `https://` and at least one more byte, without white space and control characters.
  static func isSecureURL(_ text: [UInt8]) -> Bool {
    let scheme = "https://".utf8
    return text.count > scheme.count && zip(text, scheme).allSatisfy { $0 | 0x20 == $1 | 0x20 }
      && text.allSatisfy { $0 > 0x20 && $0 != 0x7F }
  }

  /// An analytics label of FCM: `^[a-zA-Z0-9-_.~%]{1,50}$`.
  static func isLabel(_ text: [UInt8]) -> Bool { !text.isEmpty && text.count <= 50 && text.allSatisfy(isNameByte) }

  /// A topic name without its prefix: `[a-zA-Z0-9-_.~%]+`, below 900 characters (FCM's own topics: up to 900).
  static func isTopicName(_ text: ArraySlice<UInt8>, atMost most: Int = 899) -> Bool {
    !text.isEmpty && text.count <= most && text.allSatisfy(isNameByte)
  }

  /// A Firebase installation id: 17 bytes in base64url that begin with the bits 0111.
  static func isInstallationID(_ text: ArraySlice<UInt8>) -> Bool {
    guard text.count == 22, let first = text.first, first >= UInt8(ascii: "c"), first <= UInt8(ascii: "f") else { return false }
    return text.allSatisfy { Bytes.isAlphanumeric($0) || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "-") }
  }

  /// The id of an APNs broadcast channel: 1 to 256 characters of either base64 alphabet.
  static func isChannelID(_ text: ArraySlice<UInt8>) -> Bool {
    (1...256).contains(text.count)
      && text.allSatisfy {
        Bytes.isAlphanumeric($0)
          || [UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="), UInt8(ascii: "-"), UInt8(ascii: "_")].contains($0)
      }
  }

  /// A user id: 1 to 255 bytes of UTF-8 without control characters.
  public static func isUserID(_ text: ArraySlice<UInt8>) -> Bool {
    guard !text.isEmpty, text.count <= 255 else { return false }
    if text.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) { return true }
    guard let characters = String(validating: text, as: UTF8.self)?.unicodeScalars else { return false }
    return !characters.contains { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) }
  }

  public static let userIDRule = "a user's id has 1 to 255 bytes, none of them of a control character"

  static func isPackageName(_ text: [UInt8]) -> Bool {
    !text.isEmpty && text.count <= 255
      && text.allSatisfy {
        Bytes.isAlphanumeric($0) || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "-")
      }
  }

  @inline(__always)
  private static func isNameByte(_ byte: UInt8) -> Bool {
    Bytes.isAlphanumeric(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_") || byte == UInt8(ascii: ".")
      || byte == UInt8(ascii: "~") || byte == UInt8(ascii: "%")
  }

  /// UTF-8 without controls (C0, DEL, C1), line separators and characters that change the writing direction: safe in logs.
  public static func isPlainLine(_ text: [UInt8]) -> Bool {
    if text.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) { return true }
    return !String(decoding: text, as: UTF8.self).unicodeScalars.contains(where: \.isDeceptive)
  }

  /// The whole seconds of a protocol-buffers duration, rounded down: digits, optionally a point and up to nine more, then `s`.
  static func durationSeconds(_ text: [UInt8]) -> Int? {
    guard text.last == UInt8(ascii: "s") else { return nil }
    let parts = text.dropLast().split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
    guard let whole = parts.first, (1...12).contains(whole.count), whole.allSatisfy(Bytes.isDigit) else { return nil }
    if parts.count == 2 {
      guard (1...9).contains(parts[1].count), parts[1].allSatisfy(Bytes.isDigit) else { return nil }
    }
    return whole.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
  }

  /// True if the duration isn't a whole number of seconds.
  static func hasFraction(_ duration: [UInt8]) -> Bool {
    duration.drop { $0 != UInt8(ascii: ".") }.contains { $0 > UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
  }
}

extension Unicode.Scalar {
  /// True for characters that control a terminal or change how other characters are shown.
  public var isDeceptive: Bool {
    switch value {
    case 0..<0x20, 0x7F...0x9F, 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF: true
    default: false
    }
  }
}
