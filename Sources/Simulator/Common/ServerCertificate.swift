import Reactor
import TLS
import Wire

enum ServerCertificate {
  /// The TLS context of a simulator; nil without a certificate, which means no TLS.
  static func context(_ certificate: String?, _ key: String?, _ clientAuthority: String?, protocols: [String])
    throws(CredentialError) -> TLSServerContext?
  {
    guard let certificate else { return nil }
    return try TLSServerContext(
      certificate: certificate, key: key ?? certificate, clientCA: clientAuthority,
      requiresClientCertificate: clientAuthority != nil, alpn: protocols)
  }
}

/// Flushes the journal at the end of each turn of the loop.
final class JournalFlusher: TurnHook {
  private let journal: Journal
  init(_ journal: Journal) { self.journal = journal }
  func turnEnding(at now: MonotonicTime) { journal.flush() }
}
