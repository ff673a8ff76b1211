import Wire

/// Additional services of a link for a server's machine.
public protocol AcceptedTransport: Transport {
  /// The UID in the subject of the client's certificate; nil without a certificate or UID.
  var peerUserID: String? { get }
  /// Ends the output: the peer is notified after the last byte. Reading continues, so the machine sees how the peer closes.
  /// `closedByPeer` means that the peer has read, or at least received, everything.
  func finishOutput()
  /// True if the peer's system has acknowledged every byte written so far.
  var isOutputAcknowledged: Bool { get }
}

extension Link: AcceptedTransport {
  public var peerUserID: String? { tlsSession?.peerUserID }
  public var isOutputAcknowledged: Bool { bufferedOutput == 0 && hasNothingUnacknowledged }
}
