/// The content coding aes128gcm (RFC 8188): a header of salt, record size and key id, then encrypted records.
enum EncryptedContent {
  static let saltSize = 16
  /// Of what `encode` makes: the size that push services always accept as a whole body.
  static let recordSize = 4096
  /// Of the header without the key id.
  static let fixedSize = saltSize + 4 + 1
  /// A record's tag and delimiter.
  static let overhead = AES128GCM.tagSize + 1
  private static let delimiter: UInt8 = 1
  private static let lastDelimiter: UInt8 = 2

  /// A body with one record; nil if OpenSSL fails.
  /// - Parameters:
  ///   - material: the input keying material, which the receiver can find by `keyID`.
  ///   - padding: the number of zero bytes after the plaintext. With it, the plaintext has at most `recordSize` - `overhead` bytes.
  static func encode(
    _ plaintext: [UInt8], material: [UInt8], salt: [UInt8], keyID: [UInt8], padding: Int = 0
  ) -> [UInt8]? {
    let headerSize = fixedSize + keyID.count
    var body: [UInt8] = []
    body.reserveCapacity(headerSize + plaintext.count + padding + overhead)
    body += salt
    for shift in [24, 16, 8, 0] { body.append(UInt8(truncatingIfNeeded: recordSize >> shift)) }
    body.append(UInt8(keyID.count))
    body += keyID
    body += plaintext
    body.append(lastDelimiter)
    body.append(contentsOf: repeatElement(0, count: padding))
    let keys = RecordKeys(material, salt: salt)
    return AES128GCM.seal(&body, from: headerSize, key: keys.key, nonce: keys.nonce(ofRecord: 0)) ? body : nil
  }

  /// The plaintext of all records; nil if the body is not valid.
  /// - Parameter material: the input keying material for a key id; nil if there is none.
  static func decode(_ body: [UInt8], material: (_ keyID: ArraySlice<UInt8>) -> [UInt8]?) -> [UInt8]? {
    guard body.count >= fixedSize else { return nil }
    let recordSize = body[saltSize..<saltSize + 4].reduce(0) { $0 << 8 | Int($1) }
    let keyID = body[fixedSize...].prefix(Int(body[fixedSize - 1]))
    guard recordSize > overhead, keyID.count == body[fixedSize - 1], let material = material(keyID) else { return nil }
    let keys = RecordKeys(material, salt: Array(body[..<saltSize]))
    var plaintext: [UInt8] = []
    var rest = body[keyID.endIndex...]
    var number = 0
    repeat {
      let record = rest.prefix(recordSize)
      rest = rest.dropFirst(recordSize)
      guard let content = AES128GCM.open(record, key: keys.key, nonce: keys.nonce(ofRecord: number)),
        let end = content.lastIndex(where: { $0 != 0 }), content[end] == (rest.isEmpty ? lastDelimiter : delimiter)
      else { return nil }
      plaintext += content[..<end]
      number += 1
    } while !rest.isEmpty
    return plaintext
  }
}

/// The key and the nonces of a body's records (RFC 8188 §2.2, §2.3).
private struct RecordKeys {
  let key: [UInt8]
  private let nonce: [UInt8]

  private static let keyInfo = Array("Content-Encoding: aes128gcm\0".utf8)
  private static let nonceInfo = Array("Content-Encoding: nonce\0".utf8)

  init(_ material: [UInt8], salt: [UInt8]) {
    let secret = HKDF.extract(material, salt: salt)
    key = Array(HKDF.expand(secret, info: Self.keyInfo)[..<16])
    nonce = Array(HKDF.expand(secret, info: Self.nonceInfo)[..<12])
  }

  func nonce(ofRecord number: Int) -> [UInt8] {
    var nonce = nonce
    for index in 0..<8 { nonce[11 - index] ^= UInt8(truncatingIfNeeded: number >> (8 * index)) }
    return nonce
  }
}
