/// Identifies a push by its request and recipient.
struct PushTag {
  static let recipientBits = 20
  let rawValue: Int

  init(rawValue: Int) { self.rawValue = rawValue }
  init(entry: Int, recipient: Int) { rawValue = entry << Self.recipientBits | recipient }

  var entry: Int { rawValue >> Self.recipientBits }
  var recipient: Int { rawValue & (1 << Self.recipientBits - 1) }
}
