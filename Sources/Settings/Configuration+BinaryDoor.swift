/// The applications of the gateway's listener for APNs' binary interface.
extension Configuration {
  /// Applications with an APNs credential that its senders may use: the configured one, or those of the client certificates.
  package var binaryApps: [String] {
    guard let door = gateway?.apns else { return [] }
    return apps.filter { (door.app == nil || door.app == $0.id) && $0.sets.contains { !$0.set.apns.isEmpty } }.map(\.id)
  }

  /// Applications whose feedback is kept for the feedback service.
  var binaryFeedbackApps: [String] { gateway?.apns?.feedback == nil ? [] : binaryApps }
}
