import PushCore

/// The caller of an installation's path: the device with its secret, or a backend with a key for the application.
struct InstallationCaller {
  var app: [UInt8]
  var installation: [UInt8]
  var isBackend: Bool

  func message(_ operation: String) -> JSONObject { ["op": operation, "app": app, "installation": installation] }
}
