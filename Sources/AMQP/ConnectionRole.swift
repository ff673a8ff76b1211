import Wire

/// The use of a connection's channels: consuming or publishing. A role is the machine that a transport drives. It is confined to
/// the thread that drives it.
protocol ConnectionRole: Machine {
  var connection: Connection { get }
  var mostChannels: UInt16 { get }
  /// Called after the handshake; channels may be opened.
  func connectionOpened()
  func methodReceived(_ method: InboundMethod, channel: UInt16, payload: RawSpan)
  func contentHeaderReceived(_ payload: RawSpan, channel: UInt16)
  func contentBodyReceived(_ payload: RawSpan, channel: UInt16)
  /// Called after `channel.close` was received and answered. The channel is closed until it is opened again.
  func channelClosed(_ channel: UInt16, _ end: ConnectionEnd)
  func blocked(reason: String)
  func unblocked()
  /// Called before output is written, while the connection is open.
  func willWrite(at now: MonotonicTime)
  var roleDeadline: MonotonicTime { get }
  func roleDeadlineReached(at now: MonotonicTime)
  func connectionEnded(_ end: ConnectionEnd)
}

extension ConnectionRole {
  public var transport: (any Transport)? {
    get { connection.transport }
    set { connection.transport = newValue }
  }
  public var isFinished: Bool { connection.isFinished }
  public var deadline: MonotonicTime { connection.deadline(with: roleDeadline) }

  public func transportOpened(at now: MonotonicTime) { connection.transportOpened(at: now) }

  public func receive(_ bytes: RawSpan, at now: MonotonicTime) { connection.receive(bytes, at: now, for: self) }

  public func writeOutput(to buffer: inout OutputBuffer, at now: MonotonicTime) {
    connection.writeOutput(to: &buffer, at: now, for: self)
  }

  public func deadlineReached(at now: MonotonicTime) {
    connection.deadlineReached(at: now)
    if now >= roleDeadline, connection.isOpen { roleDeadlineReached(at: now) }
  }

  public func transportClosed(_ reason: TransportEnd, at now: MonotonicTime) {
    connectionEnded(connection.transportClosed(reason, at: now))
  }
}
