import PushCore

/// Which of an audience's devices a page is to have: none that is gone, and of APNs' those of one kind.
struct WantedDevices {
  private let kind: Int64
  private let withStale: Bool

  /// - Parameter withStale: those that haven't registered for long as well.
  init(_ kind: TokenKind, withStale: Bool) {
    self.kind = Int64(kind.rawValue)
    self.withStale = withStale
  }

  func contains(_ row: some SQLRow) -> Bool {
    let state = row.int(DeviceColumn.state)
    if state == Int64(DeviceState.gone.rawValue) || state == Int64(DeviceState.stale.rawValue) && !withStale { return false }
    return row.int(DeviceColumn.kind) == kind || row.int(DeviceColumn.platform) == Int64(Platform.fcm.rawValue)
  }
}
