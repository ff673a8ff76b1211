import Wire

/// What a server's machine may ask of its link besides.
public protocol AcceptedTransport: Transport {
  /// The UID in the subject of the client's certificate; nil where it has shown none, or that has none.
  var peerUserID: String? { get }
  /// Nothing more is written after what the machine has handed over: once that is with the kernel, the peer is told so. Reading goes on, so that
  /// the machine hears how the peer closes: `closedByPeer` is in good order, after everything was read or at least received.
  func finishOutput()
  /// The peer's system has acknowledged every byte written so far.
  var isOutputAcknowledged: Bool { get }
}

extension Link: AcceptedTransport {
  public var peerUserID: String? { tlsSession?.peerUserID }
  public var isOutputAcknowledged: Bool { bufferedOutput == 0 && hasNothingUnacknowledged }
}
