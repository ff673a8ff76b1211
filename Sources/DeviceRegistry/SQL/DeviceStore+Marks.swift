import PushCore

/// Marks devices according to providers' answers. A mark older than the registration has no effect.
extension DeviceStore {
  /// Marks tokens according to their provider's answers. Never waits for another writer of a device: such a device is `busy`.
  public func mark(_ marks: [DeviceMark], now: Int64) throws(RegistryError) -> [MarkOutcome] {
    guard !marks.isEmpty else { return [] }
    return try transaction(.campaigns) { () throws(RegistryError) in
      var outcomes = [MarkOutcome](repeating: .busy, count: marks.count)
      let open = try look(marks, Array(marks.indices), &outcomes)
      let sets = open.map { place, device -> [SQLValue] in
        let reason = marks[place].reason.filter { $0 != 0 }
        return [.int(device.id), .int(device.key.salt), .int(marks[place].goneSince), .text(reason), .int(now)]
      }
      let isMarked = try session.ofEach(SQL.mark, sets) { _ in true }
      for ((place, device), isMarked) in zip(open, isMarked) where isMarked == true {
        outcomes[place] = .marked(registration: device.key.registration)
      }
      // A token that was named twice may have got its mark. The others stay busy.
      _ = try look(marks, outcomes.indices.filter { outcomes[$0] == .busy }, &outcomes)
      return outcomes
    }
  }

  /// Answers the marks that have no effect.
  /// - Returns: the places of the others, with their devices.
  private func look(
    _ marks: [DeviceMark], _ places: [Int], _ outcomes: inout [MarkOutcome]
  ) throws(RegistryError) -> [(place: Int, device: Found)] {
    var asked: [(DeviceReference, Int64)] = []
    for place in places {
      let app = try knownApp(marks[place].app)
      asked.append(app.map { (.token(marks[place].platform, marks[place].token), $0) } ?? (.invalid, 0))
    }
    var open: [(place: Int, device: Found)] = []
    for (place, device) in zip(places, try found(asked, withReplaced: false)) {
      let mark = marks[place]
      guard let device, device.kind.isForActivity == mark.isForActivity else {
        outcomes[place] = .unknown
        continue
      }
      switch mark.verdict {
      case .gone where device.state == .gone, .suspect where device.state != .active:
        outcomes[place] = .unchanged(registration: device.key.registration)
      case .gone(let since) where since <= device.registeredAt:
        outcomes[place] = .registeredSince(registration: device.key.registration)
      case .gone, .suspect: open.append((place, device))
      }
    }
    return open
  }
}

extension SQL {
  /// Has no row if another transaction holds the device, or if the mark has no effect any more. So it never waits or deadlocks.
  static let mark = Statement(mark(""), postgres: mark(" FOR UPDATE SKIP LOCKED"))
  private static func mark(_ lock: String) -> String {
    """
    UPDATE devices SET reason = ?4, state = CASE WHEN CAST(?3 AS BIGINT) IS NULL THEN 1 ELSE 2 END,
      gone_at = CASE WHEN CAST(?3 AS BIGINT) IS NULL THEN gone_at ELSE ?5 END,
      marked_at = CASE WHEN CAST(?3 AS BIGINT) IS NULL THEN ?5 ELSE marked_at END
    WHERE id = (SELECT id FROM devices WHERE id = ?1 AND salt = ?2
      AND CASE WHEN CAST(?3 AS BIGINT) IS NULL THEN state = 0 ELSE state <> 2 AND ?3 > registered_at END\(lock))
    RETURNING 1
    """
  }
}
