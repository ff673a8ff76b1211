import Foundation

/// Keys and certificates for tests, made by the `openssl` command in a temporary folder, once per process. All members are file
/// paths.
public struct TestCertificates: Sendable {
  public static let shared = Result { try TestCertificates() }

  public let folder: String

  /// The authority of everything here except `selfSigned` and `otherAuthority`.
  public var authority: String { path("ca.pem") }
  public var otherAuthority: String { path("other-ca.pem") }
  public var server: String { path("server.pem") }
  public var serverKey: String { path("server.key") }
  /// For the same names, expired yesterday.
  public var expired: String { path("expired.pem") }
  public var expiredKey: String { path("expired.key") }
  /// For other.example only.
  public var wrongHost: String { path("wrong-host.pem") }
  public var wrongHostKey: String { path("wrong-host.key") }
  /// For localhost, only by the subject's common name.
  public var commonNameOnly: String { path("common-name.pem") }
  public var commonNameOnlyKey: String { path("common-name.key") }
  /// For the server's names, self-signed.
  public var selfSigned: String { path("self-signed.pem") }
  public var selfSignedKey: String { path("self-signed.key") }
  /// A client certificate, subject UID `com.example.app`, CN `Apple Push Services: com.example.app`.
  public var client: String { path("client.pem") }
  public var clientKey: String { path("client.key") }
  public var clientCombined: String { path("client-combined.pem") }
  public var clientEncryptedKey: String { path("client-encrypted.key") }
  /// PKCS#12 with `passphrase` and modern ciphers.
  public var clientP12: String { path("client.p12") }
  /// PKCS#12 with `passphrase`, RC2 and 3DES, as Keychain writes it.
  public var clientLegacyP12: String { path("client-legacy.p12") }
  public let passphrase = "correct horse"
  /// An APNs signing key: P-256, PKCS#8.
  public var p8: String { path("AuthKey_ABC123DEFG.p8") }
  /// Another signing key, for rotations.
  public var otherP8: String { path("AuthKey_HIJ456KLMN.p8") }
  /// A Google service account's key: RSA 2048, PKCS#8.
  public var rsaKey: String { path("rsa.key") }
  /// A P-384 key, which ES256 can't use.
  public var p384Key: String { path("p384.key") }

  public static func make() throws -> TestCertificates { try shared.get() }

  public func path(_ name: String) -> String { folder + "/" + name }

  private init() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("pushfleet-certificates-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    self.folder = folder.path
    removedAtExit = folder.path
    atexit { if let removedAtExit { try? FileManager.default.removeItem(atPath: removedAtExit) } }
    let names = "DNS:localhost,IP:127.0.0.1,IP:::1"
    try run(
      """
      set -e
      key() { openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out "$1"; }
      authority() { key "$1.key"; openssl req -x509 -new -key "$1.key" -subj "/CN=$2" -days 30 -out "$1.pem" \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign; }
      # leaf NAME SUBJECT DAYS EXTENSIONS
      leaf() { key "$1.key"; printf "$4" > "$1.ext"
        openssl req -new -key "$1.key" -subj "$2" | openssl x509 -req -CA ca.pem -CAkey ca.key -days "$3" \
        -extfile "$1.ext" -out "$1.pem"; }
      authority ca "Test Authority"
      authority other-ca "Other Authority"
      leaf server /CN=localhost 30 "subjectAltName=\(names)"
      leaf expired /CN=localhost -1 "subjectAltName=\(names)"
      leaf wrong-host /CN=other.example 30 "subjectAltName=DNS:other.example"
      leaf common-name /CN=localhost 30 "keyUsage=digitalSignature"
      key self-signed.key
      openssl req -x509 -new -key self-signed.key -subj /CN=localhost -days 30 -addext "subjectAltName=\(names)" -out self-signed.pem
      leaf client "/UID=com.example.app/CN=Apple Push Services: com.example.app/C=US" 30 \
        "extendedKeyUsage=clientAuth\\n1.2.840.113635.100.6.3.6=ASN1:SEQUENCE:topics\\n\(Self.topics)"
      cat client.pem client.key > client-combined.pem
      openssl pkcs8 -topk8 -in client.key -out client-encrypted.key -passout "pass:\(passphrase)"
      openssl pkcs12 -export -in client.pem -inkey client.key -certfile ca.pem -out client.p12 -passout "pass:\(passphrase)"
      openssl pkcs12 -export -legacy -in client.pem -inkey client.key -out client-legacy.p12 -passout "pass:\(passphrase)"
      key AuthKey_ABC123DEFG.p8
      key AuthKey_HIJ456KLMN.p8
      openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out rsa.key
      openssl ecparam -name secp384r1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out p384.key
      """)
  }

  /// Runs a shell script in the folder. A failure contains the script's output.
  public func run(_ script: String) throws {
    let (status, output) = try ChildProcess.run(["/bin/sh", "-c", script], directory: folder)
    guard status == 0 else { throw TestCertificatesError(description: output) }
  }

  /// Apple's topic list in the format of OpenSSL's configuration.
  private static let topics = """
    [topics]\\n1=UTF8:com.example.app\\n2=SEQUENCE:kinds\\n3=UTF8:com.example.app.voip\\n4=SEQUENCE:kinds\\n\
    [kinds]\\n1=UTF8:app\\n
    """
}

public struct TestCertificatesError: Error, CustomStringConvertible {
  public let description: String
}

nonisolated(unsafe) private var removedAtExit: String?
