import PushCore

/// Who asks for an installation, and which it is: the device itself by its secret, or a backend by a key for the application.
struct Visitor {
  var app: [UInt8]
  var installation: [UInt8]
  var isBackend: Bool

  /// The beginning of a message that says what is asked for the installation.
  func message(_ operation: String) -> JSONObjectWriter {
    var line = JSONObjectWriter()
    line.set("op", operation)
    line.set("app", app)
    line.set("installation", installation)
    return line
  }
}
