import PushCore
import TLS

/// A browser's keys, derived from its endpoint's path: a simulator that is started again knows all of them.
struct SubscriptionKeys {
  let pair: KeyPair
  /// The authentication secret, 16 bytes.
  let auth: [UInt8]

  init(path: [UInt8]) throws(CredentialError) {
    let secret = Digest.sha256(Array("pushfleet simulator key ".utf8) + path)
    // One hash in 2³² is no private key.
    do { pair = try KeyPair(privateKey: secret) } catch { pair = try KeyPair(privateKey: Digest.sha256(secret)) }
    auth = Array(Digest.sha256(Array("pushfleet simulator auth ".utf8) + path).prefix(16))
  }
}
