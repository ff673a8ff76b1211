import PushCore

/// The counter of a device's badge and notes. The tokens of an installation share one counter, even if tokens come and go. A
/// counter has the number of its first device. A device that leaves its counter to others gets a new, negative number.
extension DeviceStore {
  /// Called when a device was registered under an installation.
  /// - Parameters:
  ///   - owner: the device that had the token before, in its earlier state.
  ///   - others: the installation's other devices, in their earlier state.
  func settleCounter(_ owner: Found?, _ others: [Found], _ installation: [UInt8], _ app: Int64) throws(RegistryError) {
    let own = owner?.counter
    guard let first = others.min(by: { $0.id < $1.id }) else {
      if let owner, owner.installation != installation { try leaveCounter(of: owner) }
      return
    }
    guard own != first.counter || others.contains(where: { $0.counter != first.counter }) else { return }
    var counter = first.counter
    if let own, own != counter {
      // If only one of them has counted, its counter stays.
      let badges = try badges(of: [own, counter])
      let beyond: [SQLValue] = [.int(own), .int(app), .text(installation)]
      if badges[own] != nil, badges[counter] == nil, try session.firstInt(SQL.sharesCounterBeyond, beyond) == nil {
        counter = own
      }
    }
    try session.run(SQL.shareCounter, [.int(app), .text(installation), .int(counter)])
    for old in Set([own, first.counter].compactMap(\.self)) where old != counter { try dropCounter(old) }
  }

  /// The device moves to an installation without other devices. The devices that it leaves keep the counter.
  private func leaveCounter(of device: Found) throws(RegistryError) {
    guard try session.firstInt(SQL.sharesCounter, [.int(device.counter), .int(device.id)]) != nil else { return }
    try session.run(SQL.setCounter, [.int(device.id), .int(-1 - (makeSalt() & Int64.max >> 1))])
  }

  /// Binds a user to devices with these counters. A counter restarts at 0 unless one of its devices already belongs to the
  /// user.
  func startOver(_ counters: Set<Int64>, for user: Int64) throws(RegistryError) {
    for counter in counters.sorted() {
      guard try session.firstInt(SQL.othersBadge, [.int(counter), .int(user)]) != nil else { continue }
      try session.hold(.allNotes)
      try setBadges([counter: 0])
    }
  }

  func dropCounter(_ counter: Int64) throws(RegistryError) {
    try session.run(SQL.deleteBadge, [.int(counter)])
  }
}

extension SQL {
  static let counterOfDevice = "COALESCE(d.counter, d.id)"
  /// The device `d` whose former token this is; the latest if several had it.
  static let byReplacedToken =
    """
    FROM aliases a JOIN devices d ON d.id = a.device WHERE d.app = ?1 AND a.platform = ?2 AND a.token = ?3
    ORDER BY a.replaced_at DESC LIMIT 1
    """
  static let setCounter = Statement("UPDATE devices SET counter = ?2 WHERE id = ?1")
  static let shareCounter = Statement(
    """
    UPDATE devices SET counter = ?3 WHERE app = ?1 AND installation = ?2 AND (counter IS NULL OR counter <> ?3)
    """)
  static let ofCounter = "(d.counter = ?1 OR (d.id = ?1 AND d.counter IS NULL))"
  static let sharesCounter = Statement("SELECT d.id FROM devices d WHERE \(ofCounter) AND d.id <> ?2 LIMIT 1")
  static let sharesCounterBeyond = Statement(
    """
    SELECT d.id FROM devices d WHERE \(ofCounter) AND (d.app <> ?2 OR d.installation IS NULL OR d.installation <> ?3) LIMIT 1
    """)
  static let othersBadge = Statement(
    """
    SELECT b.device FROM badges b WHERE b.device = ?1 AND b.badge <> 0
      AND NOT EXISTS (SELECT 1 FROM devices d WHERE \(ofCounter) AND d.user_id = ?2)
    """)
  static let deleteBadge = Statement(
    "DELETE FROM badges WHERE device = ?1 AND NOT EXISTS (SELECT 1 FROM devices d WHERE \(ofCounter))")
}
