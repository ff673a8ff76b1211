/// What the gateway's door for APNs' binary interface means for applications.
extension Configuration {
  /// Whom its senders may send to, by the door's setting or by their certificates: applications with a credential for APNs.
  package var binaryApps: [String] {
    guard let door = gateway?.apns else { return [] }
    return apps.filter { (door.app == nil || door.app == $0.id) && $0.sets.contains { !$0.set.apns.isEmpty } }.map(\.id)
  }

  /// Whose feedback is kept for the feedback service.
  var binaryFeedbackApps: [String] { gateway?.apns?.feedback == nil ? [] : binaryApps }
}
