import COpenSSL

/// ECDSA on P-256 with SHA-256 and a deterministic nonce (RFC 6979): the same key and message give the same signature.
///
/// OpenSSL offers this from version 3.2 (`nonce-type`). For older versions, this type performs the steps of RFC 6979 §3.2 and
/// SEC 1 §4.1.3 with OpenSSL's HMAC, curve and arithmetic. Secret numbers are multiplied by Montgomery's method and inverted by
/// exponentiation in constant time. Computations with the private key are blinded. The caller verifies the signature.
struct DeterministicSignature: ~Copyable {
  private let context = BN_CTX_new()
  private let montgomery = BN_MONT_CTX_new()
  /// All numbers, including those of the steps below. Wiped at the end.
  private var numbers: [OpaquePointer] = []
  private static let size = DeterministicNonce.size

  deinit {
    for number in numbers { BN_clear_free(number) }
    BN_MONT_CTX_free(montgomery)
    BN_CTX_free(context)
  }

  /// R ‖ S, 64 bytes; nil if OpenSSL fails.
  static func make(_ key: OpaquePointer, _ message: [UInt8]) -> [UInt8]? {
    var steps = DeterministicSignature()
    return steps.sign(key, message)
  }

  private mutating func sign(_ key: OpaquePointer, _ message: [UInt8]) -> [UInt8]? {
    var digest = [UInt8](repeating: 0, count: Self.size)
    var privateKey = secretNumber()
    guard let order = P256.order, BN_MONT_CTX_set(montgomery, order, context) == 1,
      EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_PRIV_KEY, &privateKey) == 1, let privateKey,
      EVP_Digest(message, message.count, &digest, nil, EVP_sha256(), nil) == 1,
      let whole = number(), BN_bin2bn(digest, Int32(Self.size), whole) != nil,
      let hash = number(), BN_nnmod(hash, whole, order, context) == 1,
      let nonces = DeterministicNonce(fill: { place, rest in
        BN_bn2binpad(privateKey, place, Int32(Self.size)) == Self.size
          && BN_bn2binpad(hash, rest, Int32(Self.size)) == Self.size
      }),
      let nonce = secretNumber()
    else { return nil }
    while let bytes = nonces.next() {
      guard BN_bin2bn(bytes, Int32(Self.size), nonce) != nil else { return nil }
      if BN_is_zero(nonce) == 0, BN_cmp(nonce, order) < 0 {
        guard let r = x(of: nonce, order), let s = proof(privateKey, nonce, hash, r, order) else { return nil }
        if BN_is_zero(r) == 0, BN_is_zero(s) == 0 { return P256.bytes(of: r) + P256.bytes(of: s) }
      }
      guard nonces.reject() else { return nil }
    }
    return nil
  }

  private mutating func x(of nonce: OpaquePointer, _ order: OpaquePointer) -> OpaquePointer? {
    let point = EC_POINT_new(P256.group)
    defer { EC_POINT_clear_free(point) }
    guard let coordinate = number(), let r = number(), EC_POINT_mul(P256.group, point, nonce, nil, nil, context) == 1,
      EC_POINT_get_affine_coordinates(P256.group, point, coordinate, nil, context) == 1,
      BN_nnmod(r, coordinate, order, context) == 1
    else { return nil }
    return r
  }

  /// (hash + r × private key) ÷ nonce, blinded by a random factor.
  private mutating func proof(
    _ privateKey: OpaquePointer, _ nonce: OpaquePointer, _ hash: OpaquePointer, _ r: OpaquePointer, _ order: OpaquePointer
  ) -> OpaquePointer? {
    guard let factor = secretNumber(), let sum = secretNumber() else { return nil }
    repeat { guard BN_priv_rand_range(factor, order) == 1 else { return nil } } while BN_is_zero(factor) == 1
    guard let blinded = product(factor, privateKey), let first = product(blinded, r), let second = product(factor, hash),
      BN_mod_add_quick(sum, first, second, order) == 1, let ofNonce = inverse(nonce, order),
      let ofFactor = inverse(factor, order),
      let scaled = product(sum, ofNonce)
    else { return nil }
    return product(scaled, ofFactor)
  }

  private mutating func product(_ a: OpaquePointer, _ b: OpaquePointer) -> OpaquePointer? {
    guard let form = secretNumber(), let result = secretNumber(), BN_to_montgomery(form, a, montgomery, context) == 1,
      BN_mod_mul_montgomery(result, form, b, montgomery, context) == 1
    else { return nil }
    return result
  }

  /// Fermat inverse; the order is a prime.
  private mutating func inverse(_ a: OpaquePointer, _ order: OpaquePointer) -> OpaquePointer? {
    guard let exponent = number(), let result = secretNumber(), BN_copy(exponent, order) != nil, BN_sub_word(exponent, 2) == 1,
      BN_mod_exp_mont_consttime(result, a, exponent, order, context, montgomery) == 1
    else { return nil }
    return result
  }

  private mutating func number() -> OpaquePointer? {
    guard let number = BN_new() else { return nil }
    numbers.append(number)
    return number
  }

  private mutating func secretNumber() -> OpaquePointer? {
    guard let number = number() else { return nil }
    BN_set_flags(number, BN_FLG_CONSTTIME)
    return number
  }
}
