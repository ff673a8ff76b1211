import COpenSSL

/// Key agreement on the curve P-256. Points are uncompressed, 65 bytes (SEC 1 §2.3.3). Private keys are numbers of OpenSSL.
///
/// OpenSSL's interface by EVP does the same with key objects. Making a key and one shared secret takes a third longer with them.
enum P256 {
  static let keySize = 32
  static let pointSize = 65
  private static let uncompressed: UInt8 = 4
  // Neither is ever changed, so threads may share them.
  nonisolated(unsafe) static let group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1)
  nonisolated(unsafe) static let order = EC_GROUP_get0_order(group)

  /// A new private key. The caller owns it.
  static func randomKey() -> OpaquePointer? {
    guard let key = BN_new() else { return nil }
    repeat {
      guard BN_priv_rand_range(key, order) == 1 else {
        BN_free(key)
        return nil
      }
    } while BN_is_zero(key) == 1
    return key
  }

  /// - Parameter bytes: big-endian. Nil if they are not 32, or no private key of the curve.
  static func key(_ bytes: [UInt8]) -> OpaquePointer? {
    guard bytes.count == keySize, let key = BN_bin2bn(bytes, Int32(keySize), nil) else { return nil }
    guard BN_is_zero(key) == 0, BN_cmp(key, order) < 0 else {
      BN_clear_free(key)
      return nil
    }
    return key
  }

  /// - Parameter number: less than the group's order.
  static func bytes(of number: OpaquePointer) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: keySize)
    _ = BN_bn2binpad(number, &bytes, Int32(keySize))
    return bytes
  }

  static func publicPoint(of key: OpaquePointer) -> [UInt8]? {
    withPoint { point, context in
      guard EC_POINT_mul(group, point, key, nil, nil, context) == 1 else { return nil }
      return encoded(point, context)
    }
  }

  /// The x coordinate of the shared point (SEC 1 §3.3.1), 32 bytes; nil if `peer` is no point of the curve.
  static func sharedSecret(_ key: OpaquePointer, with peer: [UInt8]) -> [UInt8]? {
    guard isUncompressed(peer) else { return nil }
    return withPoint { point, context in
      // Decoding checks that the point is on the curve.
      guard EC_POINT_oct2point(group, point, peer, peer.count, context) == 1,
        EC_POINT_mul(group, point, nil, point, key, context) == 1, let shared = encoded(point, context)
      else { return nil }
      return Array(shared[1...keySize])
    }
  }

  /// A key object for signatures; nil if `point` is none of the curve. The caller owns it.
  static func publicKey(_ point: [UInt8]) -> OpaquePointer? {
    guard isUncompressed(point) else { return nil }
    let der = publicKeyHead + point
    return der.withUnsafeBufferPointer { buffer in
      var next = buffer.baseAddress
      return d2i_PUBKEY(nil, &next, buffer.count)
    }
  }

  /// SubjectPublicKeyInfo (RFC 5480 §2) up to the point.
  private static let publicKeyHead: [UInt8] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D,
    0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
  ]

  private static func isUncompressed(_ point: [UInt8]) -> Bool { point.count == pointSize && point[0] == uncompressed }

  private static func encoded(_ point: OpaquePointer, _ context: OpaquePointer) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: pointSize)
    let count = EC_POINT_point2oct(group, point, POINT_CONVERSION_UNCOMPRESSED, &bytes, pointSize, context)
    return count == pointSize ? bytes : nil
  }

  private static func withPoint(_ body: (_ point: OpaquePointer, _ context: OpaquePointer) -> [UInt8]?) -> [UInt8]? {
    let (point, context) = (EC_POINT_new(group), BN_CTX_new())
    defer {
      EC_POINT_clear_free(point)
      BN_CTX_free(context)
    }
    guard let point, let context, let bytes = body(point, context) else {
      OpenSSLError.clear()
      return nil
    }
    return bytes
  }
}
