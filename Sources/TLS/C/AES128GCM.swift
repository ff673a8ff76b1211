import COpenSSL

/// AES-128-GCM without additional data (RFC 5116 §5.1). A key has 16 bytes, a nonce 12.
enum AES128GCM {
  static let tagSize = 16
  /// Fetched once, because the look-up takes longer than sealing a short text. It is never changed, so threads may share it.
  private nonisolated(unsafe) static let cipher = EVP_CIPHER_fetch(nil, "AES-128-GCM", nil)

  /// Encrypts the bytes from `start` on, and appends the tag. Returns false if OpenSSL fails.
  static func seal(_ bytes: inout [UInt8], from start: Int, key: [UInt8], nonce: [UInt8]) -> Bool {
    let context = EVP_CIPHER_CTX_new()
    defer { EVP_CIPHER_CTX_free(context) }
    let end = bytes.count
    bytes.append(contentsOf: repeatElement(0, count: tagSize))
    return bytes.withUnsafeMutableBufferPointer { buffer in
      guard let base = buffer.baseAddress, let length = Int32(exactly: end - start) else { return false }
      var count: Int32 = 0
      return EVP_EncryptInit_ex2(context, cipher, key, nonce, nil) == 1
        && EVP_EncryptUpdate(context, base + start, &count, base + start, length) == 1
        && EVP_EncryptFinal_ex(context, base + end, &count) == 1
        && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(tagSize), base + end) == 1
    }
  }

  /// Returns nil if the tag at the end is not the one of the other bytes.
  static func open(_ sealed: ArraySlice<UInt8>, key: [UInt8], nonce: [UInt8]) -> [UInt8]? {
    guard sealed.count >= tagSize, let length = Int32(exactly: sealed.count - tagSize) else { return nil }
    let context = EVP_CIPHER_CTX_new()
    defer { EVP_CIPHER_CTX_free(context) }
    var bytes = Array(sealed)
    let isOpen = bytes.withUnsafeMutableBufferPointer { buffer in
      guard let base = buffer.baseAddress else { return false }
      let tag = base + Int(length)
      var count: Int32 = 0
      return EVP_DecryptInit_ex2(context, cipher, key, nonce, nil) == 1
        && EVP_DecryptUpdate(context, base, &count, base, length) == 1
        && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tagSize), tag) == 1
        && EVP_DecryptFinal_ex(context, tag, &count) == 1
    }
    guard isOpen else {
      OpenSSLError.clear()
      return nil
    }
    bytes.removeLast(tagSize)
    return bytes
  }
}
